package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
)

// defaultProfile is the profile where none is named.
const defaultProfile = "default"

// profile is a server whose key is kept. An empty URL is this machine's.
type profile struct {
	URL          string `yaml:"url,omitempty"`
	InferenceURL string `yaml:"inference_url,omitempty"`
	Key          string `yaml:"key,omitempty"`
}

// localURL is where `cutroom dev` listens by itself.
const localURL = "http://127.0.0.1:8080"

// server is where a profile's services are, without the key. A URL for one of
// them is that of both, as a reverse proxy makes it, but for the one at which
// `cutroom dev` listens by itself: people who spell it out mean that server.
func (p profile) server() Server {
	url := strings.TrimRight(first(p.URL, localURL), "/")
	gateway := url
	if url == localURL || url == "http://localhost:8080" {
		gateway = strings.TrimSuffix(url, ":8080") + ":8081"
	}
	return Server{URL: url, InferenceURL: strings.TrimRight(first(p.InferenceURL, gateway), "/")}
}

// profiles is the file that keeps them.
type profiles struct {
	Profiles map[string]profile `yaml:"profiles"`
}

func (s *Session) profileName() string { return first(s.Profile, defaultProfile) }

// ProfilesFile is where profiles are kept (XDG Base Directory Specification).
//
// Errors: that there is no home folder.
func (s *Session) ProfilesFile() (string, error) {
	folder := s.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(folder) { // the specification has others ignored
		home := s.Getenv("HOME")
		if home == "" {
			return "", &UsageError{"there is no folder for profiles: set HOME or XDG_CONFIG_HOME"}
		}
		folder = filepath.Join(home, ".config")
	}
	return filepath.Join(folder, "cutroom", "config.yaml"), nil
}

// profile returns the profile that is meant; without a name and a file it is empty.
func (s *Session) profile() (profile, error) {
	path, err := s.ProfilesFile()
	if err != nil {
		if s.Profile == "" {
			return profile{}, nil // nothing was kept anywhere
		}
		return profile{}, err
	}
	kept, err := readProfiles(path)
	if err != nil {
		return profile{}, err
	}
	found, there := kept.Profiles[s.profileName()]
	if !there && s.Profile != "" {
		return profile{}, &UsageError{fmt.Sprintf("there is no profile %q: make it with \"cutroom login --profile %s --url URL\"", s.Profile, s.Profile)}
	}
	return found, nil
}

// profiles returns all profiles, and the file that keeps them.
//
// Errors: those of ProfilesFile; that it cannot be read.
func (s *Session) profiles() (path string, kept profiles, err error) {
	if path, err = s.ProfilesFile(); err == nil {
		kept, err = readProfiles(path)
	}
	return path, kept, err
}

func readProfiles(path string) (profiles, error) {
	var kept profiles
	source, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}
	if err == nil {
		err = yaml.UnmarshalWithOptions(source, &kept, yaml.Strict())
	}
	if err != nil {
		// What the parser would show of the file may be a key.
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			err = errors.New(syntax.GetMessage())
		}
		return kept, fmt.Errorf("%s cannot be read: %w; mend or delete it", path, err)
	}
	return kept, nil
}

// writeProfiles keeps profiles, for their owner's eyes alone. A crash leaves the
// old file or the new one.
func writeProfiles(path string, kept profiles) error {
	source, err := yaml.Marshal(kept)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// CreateTemp makes a file that its owner alone may read.
	file, err := os.CreateTemp(filepath.Dir(path), "config-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(source)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
