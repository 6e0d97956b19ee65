package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/boottime"
)

// keysCommand manages the keys in the data folder, even while a server uses it. With a stage, it
// manages a deployment's keys in AWS. Servers notice a change within credential.CacheAge.
type keysCommand struct {
	Create keysCreate `cmd:"" help:"Create a key and print it once."`
	List   keysList   `cmd:"" aliases:"ls" help:"List keys."`
	Revoke keysRevoke `cmd:"" help:"Revoke a key permanently."`
	Export keysExport `cmd:"" help:"Print the hashes, tiers and limits of keys, to import them elsewhere."`
	Import keysImport `cmd:"" help:"Add the keys from a file that keys export wrote."`
}

type keysCreate struct {
	keysFlags
	tiersFlag
	catalogFlags
	Account string   `required:"" help:"Account (organization) that the key belongs to."`
	Tier    string   `default:"default" help:"Tier that sets the key's limits."`
	Label   string   `help:"Name of the key."`
	Admin   bool     `help:"Let the key create and revoke keys of its account, as on the Keys page of the console."`
	Expires string   `placeholder:"WHEN" help:"Time at which the key expires: after a duration such as 90d or 12h, on a day such as 2027-01-31 (UTC), or at a time such as 2027-01-31T12:00:00Z; by default never."`
	Models  []string `placeholder:"ID" help:"Models that the key may use, by id or alias; by default all."`
	Routes  []string `placeholder:"NAME" help:"Calls that the key may make: ${route_groups}; by default all."`
}

// limits returns the limits set by flags. It does not look up model names, because a deployment may
// have different models from this machine.
func (c *keysCreate) limits() (credential.Limits, error) {
	limits := credential.Limits{Models: c.Models}
	if len(c.Models) > credential.MaxKeyModels {
		return limits, fmt.Errorf("--models: a key can name at most %d models", credential.MaxKeyModels)
	}
	if len(c.Models) > 0 && c.Stage == "" {
		known, err := c.catalog()
		if err != nil {
			return limits, err
		}
		for _, name := range c.Models {
			if !known.Knows(name) {
				return limits, fmt.Errorf("--models: %w", catalog.UnknownModel(name))
			}
		}
	}
	for _, name := range c.Routes {
		if !slices.Contains(credential.RouteGroups(), credential.RouteGroup(name)) {
			return limits, fmt.Errorf("--routes: unknown group %q: must be one of %s", name, routeGroups())
		}
		limits.Routes = append(limits.Routes, credential.RouteGroup(name))
	}
	return limits, nil
}

// checkLabel returns an error if a label exceeds the API's limits. An empty label is valid.
func checkLabel(label string) error {
	if utf8.RuneCountInString(label) > credential.MaxLabel || strings.ContainsFunc(label, unicode.IsControl) {
		return fmt.Errorf("label: invalid %.50q; want at most %d characters, without control characters", label,
			credential.MaxLabel)
	}
	return nil
}

func routeGroups() string {
	var names []string
	for _, group := range credential.RouteGroups() {
		names = append(names, string(group))
	}
	return strings.Join(names, ", ")
}

// parseExpiry returns the time given by --expires, or the zero time if it is empty.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	if err != nil {
		var days int
		var lifetime time.Duration
		if number, isDays := strings.CutSuffix(text, "d"); isDays {
			days, err = strconv.Atoi(number)
		} else {
			lifetime, err = time.ParseDuration(text)
		}
		at = now.AddDate(0, 0, days).Add(lifetime)
	}
	switch {
	case err != nil:
		return at, fmt.Errorf("--expires: %q must be a time such as 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z", text)
	case !at.After(now) || at.Year() > 9999:
		return at, fmt.Errorf("--expires: %s is in the past, or too far in the future", text)
	}
	return at.UTC().Truncate(time.Millisecond), nil
}

func (c *keysCreate) Run(ctx context.Context, out *command.Invocation) error {
	tiers, err := c.table()
	if err != nil {
		return err
	}
	if _, ok := tiers[c.Tier]; !ok {
		names := slices.Sorted(maps.Keys(tiers))
		return fmt.Errorf("unknown tier %q: must be one of %s; set --tiers to use another file", c.Tier, strings.Join(names, ", "))
	}
	secret, key, err := c.draw(time.Now())
	if err != nil {
		return err
	}
	if c.Stage == "" {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return fmt.Errorf("CUTROOM_DATA: %w", err)
		}
	}
	return c.withStore(ctx, func(store credential.Store) error {
		if err := store.CreateKey(ctx, audit.Operator(key.CreatedAt), key); err != nil {
			return err
		}
		if out.JSON {
			view := viewOf(key)
			view.Key = secret
			return out.Print(view)
		}
		fmt.Fprintln(out.Out, secret)
		fmt.Fprintf(out.Err, "Created %s for account %s in %s. Only its hash is stored: the key is shown only this once.\n",
			key.ID, key.Account, cmp.Or(c.Stage, c.Data))
		return nil
	})
}

// draw returns a new random key without storing it.
func (c *keysCreate) draw(now time.Time) (secret string, key credential.Key, err error) {
	limits, err := c.limits()
	if err != nil {
		return "", key, err
	}
	expiresAt, err := parseExpiry(c.Expires, now)
	if err != nil {
		return "", key, err
	}
	if err := checkLabel(c.Label); err != nil {
		return "", key, fmt.Errorf("--%w", err)
	}
	if secret, err = credential.NewSecret(rand.Reader); err != nil {
		return "", key, err
	}
	key, err = credential.NewKey(secret, c.Account, c.Tier, c.Label, now)
	key.Admin, key.ExpiresAt, key.Limits = c.Admin, expiresAt, limits
	return secret, key, err
}

type keysList struct {
	keysFlags
	Account string `help:"List only keys of this account."`
}

func (c *keysList) Run(ctx context.Context, out *command.Invocation) error {
	return c.withStore(ctx, func(store credential.Store) error {
		keys, err := store.ListKeys(ctx, c.Account)
		if err != nil {
			return err
		}
		if out.JSON {
			for _, key := range keys {
				if err := out.Print(viewOf(key)); err != nil {
					return err
				}
			}
			return nil
		}
		table := tabwriter.NewWriter(out.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tACCOUNT\tTIER\tROLE\tSTATE\tCREATED\tEXPIRES\tMODELS\tROUTES\tLABEL")
		for _, key := range keys {
			view := viewOf(key)
			role := "-"
			if view.Admin {
				role = "admin"
			}
			var routes []string
			for _, group := range view.Routes {
				routes = append(routes, string(group))
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", view.ID, view.Account, view.Tier, role,
				view.State, view.CreatedAt, cmp.Or(view.ExpiresAt, "-"), cmp.Or(strings.Join(view.Models, ","), "-"),
				cmp.Or(strings.Join(routes, ","), "-"), view.Label)
		}
		return table.Flush()
	})
}

type keysRevoke struct {
	keysFlags
	ID string `arg:"" help:"Id of the key, as shown by keys list."`
}

func (c *keysRevoke) Run(ctx context.Context, out *command.Invocation) error {
	return c.withStore(ctx, func(store credential.Store) error {
		key, err := store.RevokeKey(ctx, audit.Operator(time.Now().UTC()), c.ID)
		if fault.Is(err, fault.NotFound) {
			return fmt.Errorf("there is no key %s; \"cutroom keys list\" shows the keys", c.ID)
		}
		if err != nil {
			return err
		}
		if out.JSON {
			return out.Print(viewOf(key))
		}
		fmt.Fprintf(out.Out, "%s of account %s is revoked; servers reject it within %s.\n", key.ID, key.Account,
			credential.CacheAge)
		return nil
	})
}

type keysFlags struct {
	dataFlag
	Stage string `help:"Stage of an AWS deployment whose keys to manage; by default the keys of the data folder."`
}

// deployer returns the user's AWS configuration. Profiles and single sign-on work as in the AWS
// command line. Errors name the missing setting and say how to set it.
func deployer(ctx context.Context) (aws.Config, error) {
	// Discard the SDK's log, because its error already contains the same messages.
	settings, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return aws.Config{}, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if settings.Region == "" {
		return aws.Config{}, errors.New(
			"no AWS region is set: set AWS_REGION, or AWS_PROFILE to a profile with a region")
	}
	if _, err := settings.Credentials.Retrieve(ctx); err != nil {
		return aws.Config{}, fmt.Errorf(
			"no AWS credentials were found: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (%w)", err)
	}
	return settings, nil
}

type managed struct {
	keys    credential.Store
	budgets budget.Store
}

func (f keysFlags) withStore(ctx context.Context, use func(credential.Store) error) error {
	return f.withRecords(ctx, func(r managed) error { return use(r.keys) })
}

func (f keysFlags) withRecords(ctx context.Context, use func(managed) error) error {
	machine, err := boottime.Open()
	if err != nil {
		return err
	}
	if f.Stage != "" {
		settings, err := deployer(ctx)
		if err != nil {
			return err
		}
		client := dynamo.NewClient(settings)
		err = use(managed{
			keys:    dynamo.NewKeys(client, dynamo.TableName(f.Stage, "credentials"), dynamo.TableName(f.Stage, "usage")),
			budgets: dynamo.NewBudgets(client, dynamo.TableName(f.Stage, "usage"), machine, rand.Text),
		})
		var none *types.ResourceNotFoundException
		if errors.As(err, &none) {
			return fmt.Errorf("no deployment of the stage %q exists in this account and region (%s)", f.Stage, settings.Region)
		}
		return err
	}
	if _, err := os.Stat(f.Data); err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	// If the database is lost, do not create an empty database that would seem to match the existing blobs.
	if err := checkNotLost(ctx, f.dataFlag); err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	opened, err := sqlite.Open(ctx, f.database(), sqlite.Options{Now: time.Now})
	if err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	defer opened.Close()
	// Change the owner first, because closing the database removes files.
	if err := giveToOwner(f.Data, false); err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	return use(managed{keys: opened.Keys(), budgets: opened.Budgets(machine)})
}

type keyView struct {
	ID        string                  `json:"id"`
	Key       string                  `json:"key,omitempty"`
	Account   string                  `json:"account"`
	Tier      string                  `json:"tier"`
	Admin     bool                    `json:"admin"`
	State     string                  `json:"state"`
	CreatedAt string                  `json:"created_at"`
	ExpiresAt string                  `json:"expires_at,omitempty"`
	Models    []string                `json:"models,omitempty"`
	Routes    []credential.RouteGroup `json:"routes,omitempty"`
	Label     string                  `json:"label"`
}

func viewOf(key credential.Key) keyView {
	view := keyView{
		ID: key.ID, Account: key.Account, Tier: key.Tier, Admin: key.Admin, Label: key.Label, State: "active",
		CreatedAt: key.CreatedAt.UTC().Format(time.RFC3339), Models: key.Limits.Models, Routes: key.Limits.Routes,
	}
	if !key.ExpiresAt.IsZero() {
		view.ExpiresAt = key.ExpiresAt.UTC().Format(time.RFC3339)
	}
	switch {
	case !key.RevokedAt.IsZero():
		view.State = "revoked"
	case key.Expired(time.Now()):
		view.State = "expired"
	}
	return view
}
