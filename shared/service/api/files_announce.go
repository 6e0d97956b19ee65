package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"cutroom/shared/domain/ascii"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/platform/httpserver"
)

type Signer interface {
	// Sign returns an upload request that contains no key and must start before f.SignedUntil.
	Sign(ctx context.Context, f file.File) (file.SignedUpload, error)
}

// See docs/contract/media.md#large-uploads.
type announcedBody struct {
	fileBody
	Upload uploadBody `json:"upload"`
}

type uploadBody struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	ExpiresAt *string           `json:"expires_at"`
}

func (s *service) announceFile(w http.ResponseWriter, r *http.Request, c call) error {
	sent, err := readJSON(r)
	if err != nil {
		return err
	}
	f, found := readAnnouncement(sent)
	if len(found) > 0 {
		return found
	}
	f.Account, f.Key = c.who.Account(), c.who.Key.ID
	if f, err = s.announce(w, r, c, f); err != nil {
		return err
	}
	signed, err := s.Signer.Sign(r.Context(), f)
	if err != nil {
		return fmt.Errorf("sign an upload: %w", err)
	}
	url := signed.URL
	if strings.HasPrefix(url, "/") {
		url = base(r) + url
	}
	headers := signed.Headers
	if headers == nil {
		headers = map[string]string{}
	}
	s.writeJSON(w, r, http.StatusOK, announcedBody{
		newFileBody(f), uploadBody{http.MethodPut, url, headers, timestamp(signed.ExpiresAt)},
	})
	return nil
}

// announce records a pending file. A retry with the same Idempotency-Key returns the original file with a new
// signature, which neither extends the upload time nor allows a second upload. Errors: as for s.once and
// file.Service; fault.Conflict if the upload time has expired.
func (s *service) announce(w http.ResponseWriter, r *http.Request, c call, f file.File) (file.File, error) {
	f, err := s.Files.Name(f)
	if err != nil {
		return file.File{}, err
	}
	earlier, err := s.once(w, r, c, creation{
		asked: askedOf("announce", f), resource: f.ID,
		made: func(ctx context.Context, id string) ([]byte, bool, error) {
			pending, err := s.Files.Announced(ctx, id)
			if fault.Is(err, fault.NotFound) {
				return nil, false, nil
			}
			if err != nil {
				return nil, false, err
			}
			answer, err := json.Marshal(pending)
			return answer, err == nil, err
		},
		create: func(ctx context.Context) ([]byte, error) {
			if f, err = s.Files.CreatePending(ctx, f, c.who.Tier.StoredBytes, c.who.Tier.Uploads); err != nil {
				return nil, err
			}
			return json.Marshal(f)
		},
	})
	if err != nil || earlier == nil {
		return f, err
	}
	if err := json.Unmarshal(earlier.Response, &f); err != nil {
		return file.File{}, fmt.Errorf("decode the response to an earlier announcement: %w", err)
	}
	if s.Files.URLExpired(f) {
		return file.File{}, fault.New(fault.Conflict,
			"The time to upload %s has expired. Announce the file again with another Idempotency-Key.", f.ID)
	}
	return f, nil
}

// base returns the service's URL as the client sees it, judging by the request.
func base(r *http.Request) string {
	scheme := "http://"
	// Proxies set these fields. Forging them is useless, because only the caller sees the URL.
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https://"
	}
	prefix := strings.TrimSuffix(r.Header.Get(httpserver.PrefixHeader), "/")
	if !isPrefix(prefix) {
		prefix = ""
	}
	return scheme + r.Host + prefix
}

// isPrefix reports whether a path prefix set by a proxy is valid.
func isPrefix(text string) bool {
	rest, found := strings.CutPrefix(text, "/")
	for segment := range strings.SplitSeq(rest, "/") {
		found = found && ascii.Only(segment, "._~-")
	}
	return found
}

const (
	// mimePattern matches a media type without parameters (RFC 6838, 4.2).
	mimePattern = "^[0-9A-Za-z][0-9A-Za-z!#$&^_.+-]{0,126}/[0-9A-Za-z][0-9A-Za-z!#$&^_.+-]{0,126}$"
	// maxFilename limits the length of a filename before it is cleaned, in code points. Common
	// systems' paths are shorter.
	maxFilename = 4096
)

// mimeForm is compiled on first use, because few functions need it.
var mimeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(mimePattern) })

// readAnnouncement returns all problems, in field order.
func readAnnouncement(sent jsonObject) (file.File, problems) {
	var f file.File
	var found problems
	check := func(wrong problems) { found = append(found, wrong...) }
	text := func(name string, rule func(text string) *problem) string {
		text, there, wrong := sent.text(name)
		check(wrong)
		if !there {
			check(problems{missing(name)})
		} else if wrong == nil {
			if broken := rule(text); broken != nil {
				check(problems{*broken})
			}
		}
		return text
	}
	matching := func(name string, form *regexp.Regexp) func(string) *problem {
		return func(text string) *problem {
			if form.MatchString(text) {
				return nil
			}
			wrong := patternMismatch(name, text, form.String())
			return &wrong
		}
	}
	f.Filename = text("filename", func(text string) *problem {
		var wrong problem
		switch {
		case text == "":
			wrong = tooShort("filename", text, 1)
		case utf8.RuneCountInString(text) > maxFilename:
			wrong = tooLong("filename", text, maxFilename)
		default:
			return nil
		}
		return &wrong
	})
	f.MIME = strings.ToLower(text("mime_type", matching("mime_type", mimeForm())))
	size, wrong := sent.integer("size_bytes", 1, file.MaxSignedSize)
	check(wrong)
	if size != nil {
		f.Size = *size
	} else if wrong == nil {
		check(problems{missing("size_bytes")})
	}
	f.MD5 = strings.ToLower(text("md5", matching("md5", md5Form())))
	f.Lifetime, wrong = readLifetime(sent)
	check(wrong)
	return f, found
}

func readLifetime(sent jsonObject) (time.Duration, problems) {
	value := sent.member(lifetimeField)
	if value == nil {
		return file.DefaultLifetime, nil
	}
	if value[0] != '"' {
		number, wrong := sent.integer(lifetimeField, minLifetime, maxLifetime)
		if wrong != nil {
			return 0, wrong
		}
		return time.Duration(*number) * time.Second, nil
	}
	text, _, wrong := sent.text(lifetimeField)
	if wrong != nil {
		return 0, wrong
	}
	lifetime, broken := parseLifetime(text)
	if broken != nil {
		return 0, problems{*broken}
	}
	return lifetime, nil
}
