package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// followed by a file's id
const uploadsPath = "/v1/uploads/"

// UploadURLs is the [Signer] for a single machine, whose blob store has no URLs.
type UploadURLs struct {
	secret []byte
	now    func() time.Time
}

func NewUploadURLs(secret []byte, now func() time.Time) UploadURLs { return UploadURLs{secret, now} }

func (u UploadURLs) Sign(_ context.Context, f file.File) (file.SignedUpload, error) {
	expires := f.SignedUntil().Truncate(time.Second)
	text := strconv.FormatInt(expires.Unix(), 10)
	query := url.Values{"expires": {text}, "signature": {u.signature(f.ID, text)}}
	return file.SignedUpload{URL: uploadsPath + f.ID + "?" + query.Encode(), ExpiresAt: expires}, nil
}

// check returns fault.Forbidden if the URL has expired or was not signed by Sign.
func (u UploadURLs) check(id string, query map[string]string) error {
	if !hmac.Equal([]byte(query["signature"]), []byte(u.signature(id, query["expires"]))) {
		return fault.New(fault.Forbidden, "The signature of the URL is invalid.")
	}
	expires, err := strconv.ParseInt(query["expires"], 10, 64)
	if err != nil || u.now().Unix() >= expires {
		return fault.New(fault.Forbidden, "The URL has expired.")
	}
	return nil
}

func (u UploadURLs) signature(id, expires string) string {
	mac := hmac.New(sha256.New, u.secret)
	// The prefix ensures that no other signature made with the same secret is valid for an upload.
	mac.Write([]byte("PUT\x00" + uploadsPath + "\x00" + id + "\x00" + expires))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
