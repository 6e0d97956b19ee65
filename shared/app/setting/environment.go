package setting

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/webhook"
)

// Environment reads the settings of a program that a deploy starts, each when the
// program asks for it. The first that is missing or wrong is kept, so that a
// program asks for all and looks at Err once.
type Environment struct {
	getenv func(string) string
	err    error
}

// NewEnvironment makes a reader of variables.
func NewEnvironment(getenv func(string) string) *Environment { return &Environment{getenv: getenv} }

// Err is what was wrong first, nil when nothing was.
func (e *Environment) Err() error { return e.err }

func (e *Environment) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// Required gives a variable that must be set.
func (e *Environment) Required(name string) string {
	value := e.getenv(name)
	if value == "" {
		e.fail(fmt.Errorf("%s: it is not set", name))
	}
	return value
}

// Optional gives a variable, "" where it is not set.
func (e *Environment) Optional(name string) string { return e.getenv(name) }

// Flag reports whether a variable is "true".
func (e *Environment) Flag(name string) bool {
	value := e.getenv(name)
	if value != "" && value != "true" && value != "false" {
		e.fail(fmt.Errorf("%s: %q is neither true nor false", name, value))
	}
	return value == "true"
}

// Number gives a variable that is a whole number from lowest to highest, and
// otherwise where it is not set.
func (e *Environment) Number(name string, lowest, highest, otherwise int) int {
	value := e.getenv(name)
	if value == "" {
		return otherwise
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < lowest || number > highest {
		e.fail(fmt.Errorf("%s: %q is no whole number from %d to %d", name, value, lowest, highest))
	}
	return number
}

// Size gives a variable that is a number of bytes, 0 where it is not set.
func (e *Environment) Size(name string) int64 {
	var size Size
	if value := e.getenv(name); value != "" {
		if err := size.UnmarshalText([]byte(value)); err != nil {
			e.fail(fmt.Errorf("%s: %w", name, err))
		}
	}
	return int64(size)
}

// Catalog gives the models, by CUTROOM_FAMILY and CUTROOM_CATALOG.
func (e *Environment) Catalog() *catalog.Catalog {
	family := cmp.Or(e.getenv("CUTROOM_FAMILY"), catalog.DefaultFamily)
	known, err := Catalog(family, e.getenv("CUTROOM_CATALOG"))
	if err != nil {
		e.fail(err)
	}
	return known
}

// Tiers gives the table of tiers, by CUTROOM_TIERS.
func (e *Environment) Tiers() credential.Tiers {
	tiers, err := Tiers(e.getenv("CUTROOM_TIERS"))
	if err != nil {
		e.fail(err)
	}
	return tiers
}

// Origins gives the origins that browsers may call from, by CUTROOM_CORS_ORIGINS:
// any where it is not set.
func (e *Environment) Origins() []string {
	value := e.getenv("CUTROOM_CORS_ORIGINS")
	if value == "" {
		return nil
	}
	origins, err := Origins(strings.Split(value, ","))
	if err != nil {
		e.fail(err)
	}
	return origins
}

// WebhookTargets gives where webhooks may go, by CUTROOM_WEBHOOK_ALLOW: to the
// public internet alone where it is not set.
func (e *Environment) WebhookTargets() webhook.Targets {
	value := e.getenv("CUTROOM_WEBHOOK_ALLOW")
	if value == "" {
		return webhook.Targets{}
	}
	targets, err := WebhookTargets(strings.Split(value, ","))
	if err != nil {
		e.fail(err)
	}
	return targets
}
