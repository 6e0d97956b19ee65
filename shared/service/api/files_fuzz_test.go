package api

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// Every query is either parsed or rejected with problems located in the query.
func FuzzPageQuery(f *testing.F) {
	for _, seed := range []string{
		"", "&", "=", "limit", "limit=", "limit=1", "limit=1000", "limit=1001", "limit=0", "limit=-0", "limit=%31",
		"limit=1;cursor=x", "limit=1_0",
		"limit=5&limit=x", "cursor=", "cursor=AAAA", "cursor=a%20b+c", "cursor=%zz", "%6cimit=7", "limit=\xff",
		"limit=" + strings.Repeat("9", 400),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		limit, cursor, found := pageQuery(raw)
		for _, p := range found {
			if len(p.Location) != 2 || p.Location[0] != "query" || p.Location[1] != "limit" || p.Context == nil {
				t.Errorf("%q: a problem is %+v", raw, p)
			}
		}
		if limit < minPage || limit > maxPage {
			t.Errorf("%q: the limit is %d", raw, limit)
		}
		names := readQuery(raw)
		if _, sent := names["limit"]; len(found) > 0 && !sent {
			t.Errorf("%q: problems of fields that were not sent: %v", raw, found)
		}
		if cursor != names["cursor"] {
			t.Errorf("%q: the cursor is %q", raw, cursor)
		}
	})
}

func FuzzUploadURL(f *testing.F) {
	urls := NewUploadURLs([]byte("secret"), func() time.Time { return time.Unix(1000, 0) })
	signed, err := urls.Sign(f.Context(), file.File{ID: "file_1", CreatedAt: time.Unix(2000, 0).Add(-file.SignedTime)})
	if err != nil {
		f.Fatal(err)
	}
	_, right, _ := strings.Cut(signed.URL, "?")
	for _, query := range []string{right, right + "&", right + "&expires=1", "expires=2000", "signature=",
		strings.ToUpper(right), strings.Replace(right, "2000", "%32000", 1)} {
		f.Add("file_1", query)
		f.Add("file_2", query)
		f.Add("", query)
	}
	want := readQuery(right)
	f.Fuzz(func(t *testing.T, id, raw string) {
		query := readQuery(raw)
		err := urls.check(id, query)
		isRight := id == "file_1" && query["expires"] == want["expires"] && query["signature"] == want["signature"]
		if isRight != (err == nil) || err != nil && !fault.Is(err, fault.Forbidden) {
			t.Errorf("%q %q: %v", id, raw, err)
		}
	})
}

// Every announcement either yields a valid file or is rejected with problems located in its fields.
func FuzzAnnouncement(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "[]", "7",
		`{"filename":"a","mime_type":"a/b","size_bytes":1,"md5":"0123456789abcdef0123456789ABCDEF"}`,
		`{"filename":"a","mime_type":"a/b","size_bytes":1e0,"md5":"0123456789abcdef0123456789abcdef",` +
			`"ttl_seconds":"persistent"}`,
		`{"filename":"a","mime_type":"a/b","size_bytes":5000000001,"md5":"","ttl_seconds":6e1}`,
		`{"filename":"","mime_type":"a","size_bytes":-1e999,"md5":null,"ttl_seconds":"60"}`, `{"size_bytes":0x1}`,
		`{"filename":"\ud800"}`,
		`{"filename":"a","filename":7}`, `{"ttl_seconds":[[[[]]]]}`, strings.Repeat(`{"a":`, 100),
	} {
		f.Add(seed)
	}
	stored := regexp.MustCompile(`^[0-9a-f]{32}$`)
	f.Fuzz(func(t *testing.T, text string) {
		sent, err := parseJSON([]byte(text))
		var invalid problems
		if err != nil {
			if !errors.As(err, &invalid) {
				t.Errorf("unexpected error: %v", err)
			}
			return
		}
		announced, found := readAnnouncement(sent)
		for _, p := range found {
			if len(p.Location) != 2 || p.Location[0] != "body" || p.Message == "" || p.Type == "" || p.Context == nil {
				t.Errorf("a problem is %+v", p)
			}
		}
		if len(found) > 0 {
			return
		}
		life := announced.Lifetime
		if announced.Size < 1 || announced.Size > file.MaxSignedSize || !stored.MatchString(announced.MD5) ||
			announced.Filename == "" ||
			strings.ToLower(announced.MIME) != announced.MIME || life != 0 && (life < file.MinLifetime ||
			life > file.MaxLifetime) {
			t.Errorf("announced is %+v", announced)
		}
	})
}
