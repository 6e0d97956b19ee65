// Package command is what the command line offers to users of the two services:
// each command is a struct whose fields are its arguments and flags, and whose
// method Run does it.
//
// Results go to stdout and nothing else does; what is said meanwhile goes to
// stderr.
package command

import (
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

// Commands are the commands of a client.
type Commands struct {
	Edit     Edit          `cmd:"" group:"Media" help:"Edit videos or images."`
	Image    Image         `cmd:"" group:"Media" help:"Edit an image."`
	T2V      T2V           `cmd:"" name:"t2v" group:"Media" help:"Make a video from a text."`
	Jobs     Jobs          `cmd:"" group:"Media" help:"List, watch, cancel and download jobs."`
	Files    Files         `cmd:"" group:"Media" help:"Store files, to use them again."`
	Chat     Chat          `cmd:"" group:"Text" help:"Chat with a model."`
	Models   Models        `cmd:"" group:"Account" help:"List the models."`
	Quota    Quota         `cmd:"" group:"Account" help:"Show the realtime sessions of the account."`
	Usage    Usage         `cmd:"" group:"Account" help:"Show what the account used, by day and model."`
	Token    Token         `cmd:"" group:"Account" help:"Make a client token, for a browser or an app."`
	Secret   WebhookSecret `cmd:"" name:"webhook-secret" group:"Account" help:"Show the secret that webhooks are signed with."`
	Login    Login         `cmd:"" group:"Account" help:"Keep a server's key."`
	Logout   Logout        `cmd:"" group:"Account" help:"Forget a key that is kept."`
	Profiles Profiles      `cmd:"" group:"Account" help:"List the servers whose keys are kept."`
}

// Flags are those that every command has.
type Flags struct {
	JSON    bool   `name:"json" help:"Print JSON: one document, or a line an item of a list; errors too."`
	Profile string `env:"CUTROOM_PROFILE" placeholder:"NAME" help:"Server to use, of those that login keeps (${env})."`
}

// Session is what a command works with.
type Session struct {
	Flags
	In       io.Reader
	Out, Err io.Writer
	// Getenv reads a variable of the environment.
	Getenv func(string) string
	// Version names this program to the services.
	Version string
}

// Server is where a command line finds the services, and the key for them.
type Server struct {
	URL          string `json:"url"`
	InferenceURL string `json:"inference_url"`
	Key          string `json:"-"`
	// KeyFrom says where the key comes from, "" where there is none.
	KeyFrom string `json:"key_from"`
}

// Server finds out which services are meant: the environment's word counts, then
// the profile's, then this machine's own.
//
// A key goes only where it belongs: the profile's to the profile's servers, and
// the one that `cutroom dev` keeps to this machine.
//
// Errors: that the profile does not exist or cannot be read.
func (s *Session) Server() (Server, error) {
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
		path := DevKeyFile(first(s.Getenv("CUTROOM_DATA"), ".cutroom"))
		if key, err := os.ReadFile(path); err == nil {
			server.Key, server.KeyFrom = strings.TrimSpace(string(key)), path
		}
	}
	return server, nil
}

// DevKeyFile is where `cutroom dev` keeps the key that it makes, in its data folder.
func DevKeyFile(data string) string { return filepath.Join(data, "dev-key") }

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// IsLocal reports whether a URL is of this machine.
func IsLocal(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	return parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// UsesThisMachine reports whether the services are this machine's because nothing
// else was said.
func (s *Session) UsesThisMachine() bool {
	kept, err := s.profile()
	return err == nil && s.Getenv("CUTROOM_URL") == "" && kept.URL == ""
}

// Client makes a client of the services that are meant. The caller closes it.
//
// Errors: those of Server; [*UsageError] for a URL that is none; [*KeyError].
func (s *Session) Client() (*client.Client, error) {
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

func (s *Session) clientOf(server Server) (*client.Client, error) {
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

// with runs something that needs a client.
func (s *Session) with(ctx context.Context, use func(context.Context, *client.Client) error) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	return use(ctx, c)
}

// note says something to a person, beside the results.
func (s *Session) note(format string, values ...any) {
	if !s.JSON {
		fmt.Fprintln(s.Err, "cutroom:", printable(fmt.Sprintf(format, values...)))
	}
}

// catalog returns the models that defaults and completions are chosen from:
// CUTROOM_CATALOG of the family CUTROOM_FAMILY, as the server has it, else the
// built-in ones.
func (s *Session) catalog() (*catalog.Catalog, error) {
	return setting.Catalog(first(s.Getenv("CUTROOM_FAMILY"), catalog.DefaultFamily), s.Getenv("CUTROOM_CATALOG"))
}

// latest returns the name of the model that edits if none is named.
//
// Errors: *UsageError if the catalog has no model of the kind.
func (s *Session) latest(kind catalog.Kind) (string, error) {
	known, err := s.catalog()
	if err != nil {
		return "", err
	}
	m, ok := known.First(kind)
	if !ok {
		return "", &UsageError{fmt.Sprintf("the catalog has no model of the kind %s; name a model with -m", kind)}
	}
	return m.LatestName(), nil
}
