package setting

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/webhook"
)

// Environment reads the settings of a program in AWS. Err returns the first error of any read.
type Environment struct {
	getenv func(string) string
	// The field people is the format of files that are written by hand. It is nil for functions, so that they do not
	// link a YAML parser.
	people *format
	err    error
}

func NewEnvironment(getenv func(string) string) *Environment {
	return &Environment{getenv: getenv, people: inYAML()}
}

// A function reads JSON files (see catalog.JSON), so that it does not link a YAML parser.
func NewFunction(getenv func(string) string) *Environment { return &Environment{getenv: getenv} }

func (e *Environment) files() *format { return cmp.Or(e.people, inJSON()) }
func (e *Environment) Err() error     { return e.err }

func (e *Environment) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *Environment) Required(name string) string {
	value := e.getenv(name)
	if value == "" {
		e.fail(fmt.Errorf("%s: must be set", name))
	}
	return value
}

func (e *Environment) Optional(name string) string { return e.getenv(name) }

// URL returns the URL of a server, such as http://127.0.0.1:4566, or "" if the variable is not set.
func (e *Environment) URL(name string) string {
	value := e.getenv(name)
	if value == "" {
		return ""
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" ||
		value != parsed.Scheme+"://"+parsed.Host {
		e.fail(fmt.Errorf("%s: %q must be the URL of a server, for example https://s3.example.com", name, value))
	}
	return value
}

func (e *Environment) Flag(name string) bool {
	value := e.getenv(name)
	if value != "" && value != "true" && value != "false" {
		e.fail(fmt.Errorf("%s: %q must be true or false", name, value))
	}
	return value == "true"
}

// Number returns an integer between lowest and highest. If the variable is not set, it returns the parameter
// `otherwise`.
func (e *Environment) Number(name string, lowest, highest, otherwise int) int {
	value := e.getenv(name)
	if value == "" {
		return otherwise
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < lowest || number > highest {
		e.fail(fmt.Errorf("%s: %q must be an integer from %d to %d", name, value, lowest, highest))
	}
	return number
}

// Size returns a size in bytes, or 0 if the variable is not set.
func (e *Environment) Size(name string) int64 {
	var size Size
	if value := e.getenv(name); value != "" {
		if err := size.UnmarshalText([]byte(value)); err != nil {
			e.fail(fmt.Errorf("%s: %w", name, err))
		}
	}
	return int64(size)
}

func (e *Environment) Catalog() *catalog.Catalog {
	family := cmp.Or(e.getenv("CUTROOM_FAMILY"), catalog.DefaultFamily)
	known, err := e.files().readCatalog(family, e.getenv("CUTROOM_CATALOG"))
	if err != nil {
		e.fail(err)
	}
	return known
}

func (e *Environment) Tiers() credential.Tiers {
	tiers, err := e.files().readTiers(e.getenv("CUTROOM_TIERS"))
	if err != nil {
		e.fail(err)
	}
	return tiers
}

// Origins reads CUTROOM_CORS_ORIGINS. nil allows any origin.
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
