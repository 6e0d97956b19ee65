package livekit_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/service/realtime/livekit"
)

func encode(join *livekit.JoinRequest, compressed bool) []byte {
	content := livekit.Marshal(join)
	if !compressed {
		return livekit.Marshal(&livekit.WrappedJoinRequest{JoinRequest: content})
	}
	return livekit.Marshal(&livekit.WrappedJoinRequest{Compression: livekit.Gzip, JoinRequest: zipped(content)})
}

func zipped(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(content)
	w.Close()
	return b.Bytes()
}

func request(query url.Values) *http.Request {
	return httptest.NewRequest(http.MethodGet, "/v1/rooms/r/rtc?"+query.Encode(), nil)
}

func TestJoinRequestIsRead(t *testing.T) {
	asked := &livekit.JoinRequest{
		PublisherOffer: &livekit.SessionDescription{Type: "offer", Sdp: "v=0", Id: 7}, Reconnect: true, ParticipantSid: "PA_1",
	}
	for name, text := range map[string]string{
		"plain":      base64.URLEncoding.EncodeToString(encode(asked, false)),
		"compressed": base64.URLEncoding.EncodeToString(encode(asked, true)),
		"unpadded":   base64.RawURLEncoding.EncodeToString(encode(asked, true)),
	} {
		r := request(url.Values{"join_request": {text}, "access_token": {"t"}})
		join, err := livekit.ReadJoin(r, livekit.Version1, livekit.MaxJoin)
		if err != nil || !reflect.DeepEqual(join.Request, asked) || join.Resume != "PA_1" || livekit.TokenOf(r) != "t" {
			t.Errorf("%s: %+v, %v", name, join, err)
		}
	}
	r := request(url.Values{"reconnect": {"1"}, "sid": {"PA_2"}})
	r.Header.Set("Authorization", "bearer header")
	join, err := livekit.ReadJoin(r, livekit.Version0, livekit.MaxJoin)
	if err != nil || join.Resume != "PA_2" || livekit.TokenOf(r) != "header" || join.Request.PublisherOffer != nil {
		t.Errorf("version 0: %+v, %v", join, err)
	}
}

func TestInvalidJoinRequestIsRejected(t *testing.T) {
	bomb := &livekit.JoinRequest{ParticipantSid: string(make([]byte, 10<<20))}
	for name, text := range map[string]string{
		"not base64": "?", "no message": base64.URLEncoding.EncodeToString([]byte{0xff}),
		"a bomb": base64.URLEncoding.EncodeToString(encode(bomb, true)),
		"not compressed": base64.URLEncoding.EncodeToString(
			[]byte{8, byte(livekit.Gzip), 18, 2, 'n', 'o'}),
	} {
		_, err := livekit.ReadJoin(request(url.Values{"join_request": {text}}), livekit.Version1, livekit.MaxJoin)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReadJoin(f *testing.F) {
	asked := &livekit.JoinRequest{PublisherOffer: &livekit.SessionDescription{Sdp: "v=0"}}
	f.Add(encode(asked, false))
	f.Add(encode(asked, true))
	f.Fuzz(func(t *testing.T, wrapped []byte) {
		query := url.Values{"join_request": {base64.URLEncoding.EncodeToString(wrapped)}}
		join, err := livekit.ReadJoin(request(query), livekit.Version1, livekit.MaxJoin)
		if err == nil && join.Request == nil || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v, %v", join, err)
		}
	})
}

func TestTokenSurvivesRoundTrip(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	tokens := livekit.NewTokens([]byte("a secret"), clock)
	grant := livekit.Grant{Room: "room_1", Identity: "client-1", Publish: true, Expires: now.Add(time.Minute)}
	token, err := tokens.Make(grant)
	if err != nil {
		t.Fatal(err)
	}
	read, expired, err := tokens.Read(token)
	read.Expires = read.Expires.UTC()
	if err != nil || expired || read != grant {
		t.Errorf("read as %+v, expired %t, %v", read, expired, err)
	}
	now = now.Add(2 * time.Minute)
	if read, expired, err := tokens.Read(token); err != nil || !expired || read.Identity != "client-1" {
		t.Errorf("after its expiry: %+v, expired %t, %v", read, expired, err)
	}
	// Combine the header of an unsigned token with this token's claims.
	unsigned := "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0" + token[bytes.IndexByte([]byte(token), '.'):]
	for _, wrong := range []string{"", "a.b.c", token + "a", unsigned, token + strings.Repeat(" ", 1<<10)} {
		if _, _, err := tokens.Read(wrong); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, _, err := livekit.NewTokens([]byte("another"), clock).Read(token); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("signed by another: %v", err)
	}
}
