package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
)

const defaultProfile = "default"

type profile struct {
	URL          string `yaml:"url,omitempty"`
	InferenceURL string `yaml:"inference_url,omitempty"`
	Key          string `yaml:"key,omitempty"`
}

const localURL = "http://127.0.0.1:8080"

// server returns the URLs of a profile's services, without the key. A single URL is used for both services, as
// they may be behind a reverse proxy. Only the default URL of `cutroom dev` expands to its two ports.
func (p profile) server() Server {
	url := strings.TrimRight(cmp.Or(p.URL, localURL), "/")
	gateway := url
	if url == localURL || url == "http://localhost:8080" {
		gateway = strings.TrimSuffix(url, ":8080") + ":8081"
	}
	return Server{URL: url, InferenceURL: strings.TrimRight(cmp.Or(p.InferenceURL, gateway), "/")}
}

type profiles struct {
	Profiles map[string]profile `yaml:"profiles"`
}

func (s *Invocation) profileName() string { return cmp.Or(s.Profile, defaultProfile) }

// profilesFile returns the path of the profiles file (XDG Base Directory Specification).
func (s *Invocation) profilesFile() (string, error) {
	folder := s.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(folder) { // the specification says to ignore relative paths
		home := s.Getenv("HOME")
		if home == "" {
			return "", &UsageError{"cannot find the folder for profiles: set HOME or XDG_CONFIG_HOME"}
		}
		folder = filepath.Join(home, ".config")
	}
	return filepath.Join(folder, "cutroom", "config.yaml"), nil
}

// profile returns the selected profile. It is empty if no profile is selected and the file does not exist.
func (s *Invocation) profile() (profile, error) {
	path, err := s.profilesFile()
	if err != nil {
		if s.Profile == "" {
			return profile{}, nil // the profiles folder is unknown
		}
		return profile{}, err
	}
	kept, err := readProfiles(path)
	if err != nil {
		return profile{}, err
	}
	found, there := kept.Profiles[s.profileName()]
	if !there && s.Profile != "" {
		return profile{}, &UsageError{
			fmt.Sprintf("there is no profile %q: create it with \"cutroom login --profile %s --url URL\"", s.Profile, s.Profile),
		}
	}
	return found, nil
}

func (s *Invocation) profiles() (path string, kept profiles, err error) {
	if path, err = s.profilesFile(); err == nil {
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
		// The parser's full error could contain a key, so keep only its message.
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			err = errors.New(syntax.GetMessage())
		}
		return kept, fmt.Errorf("cannot read %s: %w; correct or delete it", path, err)
	}
	return kept, nil
}

// writeProfiles writes the profiles atomically to a file that only its owner can read.
func writeProfiles(path string, kept profiles) error {
	source, err := yaml.Marshal(kept)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// CreateTemp makes a file that only its owner can read.
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
