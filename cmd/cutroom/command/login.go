package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"cutroom/shared/client"
)

// Login stores a key in a profile if the server accepts it.
type Login struct {
	URL          string `name:"url" placeholder:"URL" help:"Base URL of the media service; by default the profile's or this machine's."`
	InferenceURL string `name:"inference-url" placeholder:"URL" help:"Base URL of the inference gateway; by default the profile's, or the media service's."`
}

func (Login) Help() string {
	return "It asks for the key without showing it, or reads the key from stdin if stdin is not a terminal. It stores " +
		"the key in ~/.config/cutroom/config.yaml, which only you can read."
}

func (c *Login) Run(ctx context.Context, s *Invocation) error {
	path, kept, err := s.profiles()
	if err != nil {
		return err
	}
	wanted := kept.Profiles[s.profileName()]
	if c.URL != "" && c.URL != wanted.URL {
		wanted.InferenceURL = "" // the URL belonged to the previous server
	}
	wanted.URL, wanted.InferenceURL = cmp.Or(c.URL, wanted.URL), cmp.Or(c.InferenceURL, wanted.InferenceURL)
	if wanted.Key, err = s.readKey(); err != nil {
		return err
	}
	server := wanted.server()
	server.Key = wanted.Key
	if err := check(ctx, s, server); err != nil {
		return err
	}
	if kept.Profiles == nil {
		kept.Profiles = map[string]profile{}
	}
	kept.Profiles[s.profileName()] = wanted
	if err := writeProfiles(path, kept); err != nil {
		return err
	}
	s.note("the key for %s is stored in %s (profile %s)", server.URL, path, s.profileName())
	if s.JSON {
		return s.Print(profileView{s.profileName(), server.URL, server.InferenceURL, true})
	}
	return nil
}

// check tests a key with a request that changes nothing.
func check(ctx context.Context, s *Invocation, server Server) error {
	c, err := s.clientOf(server)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err = c.Quota(ctx); client.IsStatus(err, 403) {
		return &UsageError{"this is a client token, which expires soon: use a permanent key, which begins with ck_"}
	}
	return err
}

func (s *Invocation) readKey() (string, error) {
	var key string
	if file, ok := s.In.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		typed, err := s.readHidden(file)
		if err != nil {
			return "", err
		}
		key = typed
	} else {
		line, err := bufio.NewReader(io.LimitReader(s.In, 4<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		key = line
	}
	if key = strings.TrimSpace(key); key == "" {
		return "", &UsageError{"no key was given: type it, or send it to stdin"}
	}
	return key, nil
}

// readHidden prompts for a line and reads it without echo. It returns context.Canceled for Ctrl-C.
func (s *Invocation) readHidden(input *os.File) (string, error) {
	state, err := term.MakeRaw(int(input.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(input.Fd()), state) }()
	typed, err := term.NewTerminal(readWriter{input, s.Err}, "").ReadPassword("Key: ")
	if errors.Is(err, io.EOF) {
		return "", context.Canceled
	}
	return typed, err
}

type readWriter struct {
	io.Reader
	io.Writer
}

type Logout struct{}

func (Logout) Run(s *Invocation) error {
	path, kept, err := s.profiles()
	if err != nil {
		return err
	}
	if _, there := kept.Profiles[s.profileName()]; !there {
		return &UsageError{fmt.Sprintf("there is no profile %q; cutroom profiles lists the profiles", s.profileName())}
	}
	delete(kept.Profiles, s.profileName())
	if err := writeProfiles(path, kept); err != nil {
		return err
	}
	s.note("the profile %s is deleted; its key still works until it is revoked", s.profileName())
	return nil
}

// Profiles lists the profiles without their keys.
type Profiles struct{}

type profileView struct {
	Name         string `json:"profile"`
	URL          string `json:"url"`
	InferenceURL string `json:"inference_url"`
	HasKey       bool   `json:"has_key"`
}

func (Profiles) Run(s *Invocation) error {
	_, kept, err := s.profiles()
	if err != nil {
		return err
	}
	list := s.newList("PROFILE", "URL", "INFERENCE URL")
	for _, name := range slices.Sorted(maps.Keys(kept.Profiles)) {
		p := kept.Profiles[name]
		server := p.server()
		view := profileView{name, server.URL, server.InferenceURL, p.Key != ""}
		if err := list.add(view, view.Name, view.URL, view.InferenceURL); err != nil {
			return err
		}
	}
	return list.end()
}
