package tracing_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
)

type credentialsOf struct{ secret, token string }

var authorization = regexp.MustCompile(
	`^AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([\w-]+)/(\w+)/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$`)

// verify recomputes a request's AWS signature without the signer's code, and returns the access key id.
func verify(r *http.Request, region, service string, secrets map[string]credentialsOf) (string, error) {
	parts := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if parts == nil {
		return "", fmt.Errorf("the authorization is %q", r.Header.Get("Authorization"))
	}
	id, day, signedHeaders, signature := parts[1], parts[2], parts[5], parts[6]
	if parts[3] != region || parts[4] != service {
		return "", fmt.Errorf("the request is signed for %s in %s", parts[4], parts[3])
	}
	keys, known := secrets[id]
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if age := time.Since(at); err != nil || age > 5*time.Minute || age < -5*time.Minute || !known ||
		day != at.Format("20060102") || r.Header.Get("X-Amz-Security-Token") != keys.token {
		return "", fmt.Errorf("the request is signed with %q at %q", id, r.Header.Get("X-Amz-Date"))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.ContentLength != int64(len(body)) || len(r.TransferEncoding) > 0 {
		return "", fmt.Errorf("the length is %d, want %d", r.ContentLength, len(body))
	}
	text := r.Method + "\n" + r.URL.EscapedPath() + "\n" + r.URL.RawQuery + "\n"
	signed := map[string]bool{}
	for _, name := range strings.Split(signedHeaders, ";") {
		signed[name] = true
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		text += name + ":" + strings.TrimSpace(value) + "\n"
	}
	for _, name := range []string{"host", "x-amz-date", "content-type"} {
		if !signed[name] {
			return "", fmt.Errorf("%s is not signed", name)
		}
	}
	if keys.token != "" && !signed["x-amz-security-token"] {
		return "", errors.New("the session's token is not signed")
	}
	text += "\n" + signedHeaders + "\n" + hexSum(body)
	key := []byte("AWS4" + keys.secret)
	for _, part := range []string{day, region, service, "aws4_request"} {
		key = hmacOf(key, part)
	}
	scope := strings.Join([]string{day, region, service, "aws4_request"}, "/")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), scope, hexSum([]byte(text))}, "\n")
	if want := hex.EncodeToString(hmacOf(key, toSign)); signature != want {
		return "", fmt.Errorf("the signature is %s, want %s of %q", signature, want, text)
	}
	return id, nil
}

func hmacOf(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func hexSum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
