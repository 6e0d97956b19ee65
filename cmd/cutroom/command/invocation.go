// Package command contains the commands for users of the two services. Each command is a struct
// whose fields are its arguments and flags, and whose Run method runs it.
//
// Only results go to stdout. Everything else goes to stderr.
package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cutroom/shared/app/setting"
	"cutroom/shared/client"
	"cutroom/shared/domain/catalog"
)

type Commands struct {
	Edit     Edit          `cmd:"" group:"Media" help:"Edit videos or images."`
	Image    Image         `cmd:"" group:"Media" help:"Edit an image."`
	T2V      T2V           `cmd:"" name:"t2v" group:"Media" help:"Make a video from text."`
	I2V      I2V           `cmd:"" name:"i2v" group:"Media" help:"Make a video from an image."`
	Jobs     Jobs          `cmd:"" group:"Media" help:"List, search, watch, cancel, download, share and delete jobs."`
	Files    Files         `cmd:"" group:"Media" help:"Store files for reuse."`
	Inspect  Inspect       `cmd:"" group:"Media" help:"Verify a file's Content Credentials: who made it, how and when."`
	Chat     Chat          `cmd:"" group:"Text" help:"Chat with a model."`
	MCP      MCP           `cmd:"" name:"mcp" group:"Text" help:"Serve an agent through the Model Context Protocol."`
	Models   Models        `cmd:"" group:"Account" help:"List the models."`
	Quota    Quota         `cmd:"" group:"Account" help:"Show how many realtime sessions the account uses."`
	Usage    Usage         `cmd:"" group:"Account" help:"Show the account's usage by day, model or key."`
	Token    Token         `cmd:"" group:"Account" help:"Create a client token for a browser or an app."`
	Secret   WebhookSecret `cmd:"" name:"webhook-secret" group:"Account" help:"Show the secret that webhooks are signed with."`
	Login    Login         `cmd:"" group:"Account" help:"Store a server's key."`
	Logout   Logout        `cmd:"" group:"Account" help:"Delete a stored key."`
	Profiles Profiles      `cmd:"" group:"Account" help:"List the servers with stored keys."`
}

type Flags struct {
	JSON    bool   `name:"json" help:"Print results and errors as JSON: one document, or one line for each item of a list."`
	Profile string `env:"CUTROOM_PROFILE" placeholder:"NAME" help:"Profile of login to use (${env})."`
}

type Invocation struct {
	Flags
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Version  string
}

type Server struct {
	URL          string `json:"url"`
	InferenceURL string `json:"inference_url"`
	Key          string `json:"-"`
	// KeyFrom names the key's source. It may be empty.
	KeyFrom string `json:"key_from"`
}

// Server returns the services to use. It checks the environment, the profile and this machine, in this order.
//
// A key is sent only to the servers it is for: a profile's key to the profile's servers, and the
// key of `cutroom dev` to this machine.
func (s *Invocation) Server() (Server, error) {
	kept, err := s.profile()
	if err != nil {
		return Server{}, err
	}
	own := kept.server()
	server := own
	if url := s.Getenv("CUTROOM_URL"); url != "" {
		server = profile{URL: url}.server()
	}
	if url := s.Getenv("CUTROOM_INFERENCE_URL"); url != "" {
		server.InferenceURL = strings.TrimRight(url, "/")
	}
	switch key := s.Getenv("CUTROOM_API_KEY"); {
	case key != "":
		server.Key, server.KeyFrom = key, "CUTROOM_API_KEY"
	case kept.Key != "" && server == own:
		server.Key, server.KeyFrom = kept.Key, "the profile "+s.profileName()
	case IsLocal(server.URL) && IsLocal(server.InferenceURL):
		path := DevKeyFile(cmp.Or(s.Getenv("CUTROOM_DATA"), ".cutroom"))
		if key, err := os.ReadFile(path); err == nil {
			server.Key, server.KeyFrom = strings.TrimSpace(string(key)), path
		}
	}
	return server, nil
}

// DevKeyFile returns the path of the key that `cutroom dev` creates in its data folder.
func DevKeyFile(data string) string { return filepath.Join(data, "dev-key") }

func IsLocal(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	return parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// UsesThisMachine reports whether the commands use the server on this machine, which they do if no
// setting or profile names another server.
func (s *Invocation) UsesThisMachine() bool {
	kept, err := s.profile()
	return err == nil && s.Getenv("CUTROOM_URL") == "" && kept.URL == ""
}

// Client returns a client for the services. The caller must close it.
//
// Errors: as for Server; [*UsageError] for an invalid URL; [*KeyError].
func (s *Invocation) Client() (*client.Client, error) {
	server, err := s.Server()
	if err != nil {
		return nil, err
	}
	c, err := s.clientOf(server)
	if err == nil && server.Key == "" {
		c.Close()
		return nil, &KeyError{server.URL}
	}
	return c, err
}

func (s *Invocation) clientOf(server Server) (*client.Client, error) {
	c, err := client.New(client.Config{
		URL: server.URL, InferenceURL: server.InferenceURL, Key: server.Key,
		UserAgent: "cutroom/" + s.Version, NewID: rand.Text, Backoff: 500 * time.Millisecond,
		Repeating: func(err error, pause time.Duration) {
			s.note("%v; trying again in %s", err, pause.Round(100*time.Millisecond))
		},
	})
	if err != nil {
		return nil, &UsageError{err.Error()}
	}
	return c, nil
}

func (s *Invocation) with(ctx context.Context, use func(context.Context, *client.Client) error) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	return use(ctx, c)
}

// note prints a message for human readers to stderr.
func (s *Invocation) note(format string, values ...any) {
	if !s.JSON {
		fmt.Fprintln(s.Err, "cutroom:", printable(fmt.Sprintf(format, values...)))
	}
}

// catalog returns the catalog for defaults and completions: the file CUTROOM_CATALOG or the
// built-in catalog, in the family CUTROOM_FAMILY.
func (s *Invocation) catalog() (*catalog.Catalog, error) {
	return setting.Catalog(cmp.Or(s.Getenv("CUTROOM_FAMILY"), catalog.DefaultFamily), s.Getenv("CUTROOM_CATALOG"))
}

// latest returns the name of the default model of a kind.
//
// Errors: *UsageError if the catalog has no model of the kind.
func (s *Invocation) latest(kind catalog.Kind) (string, error) {
	known, err := s.catalog()
	if err != nil {
		return "", err
	}
	m, ok := known.First(kind)
	if !ok {
		return "", &UsageError{fmt.Sprintf("the catalog has no %s model; name a model with -m", kind)}
	}
	return m.LatestName(), nil
}
