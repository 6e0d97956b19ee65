package room

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/testkit/alloctest"
)

func hostileQueries() map[string]string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(bytes.Repeat([]byte("\x2a\x00"), 1<<17)) // AddTrack requests
	w.Close()
	bomb := base64.URLEncoding.EncodeToString(livekit.Marshal(
		&livekit.WrappedJoinRequest{Compression: livekit.Gzip, JoinRequest: b.Bytes()}))
	var pairs strings.Builder
	for i := range 10_000 {
		pairs.WriteString("&" + string(rune(0x100+i)) + "=")
	}
	const size = 60_000
	lists := `{"a":[` + strings.Repeat("[],", 15_000) + `0]}`
	return map[string]string{
		"a bomb": "join_request=" + bomb, "a bomb and a token": "access_token=e30.e30.e30&join_request=" + bomb,
		"pairs": pairs.String(), "empty pairs": strings.Repeat("a&", size/2), "semicolons": strings.Repeat(";", size),
		"a long token":       "access_token=" + strings.Repeat("a", size),
		"a token of dots":    "access_token=" + strings.Repeat(".", size),
		"a token of lists":   "access_token=" + base64.RawURLEncoding.EncodeToString([]byte(lists)) + ".e30.e30",
		"a long join":        "join_request=" + strings.Repeat("a", size),
		"an escaped join":    "join_request=" + strings.Repeat("%61", size/3),
		"an escaped token":   "access_token=" + strings.Repeat("%2e", size/3),
		"a sid":              "reconnect=1&sid=" + strings.Repeat("a", size),
		"nothing":            "",
		"a join of requests": "join_request=" + base64.URLEncoding.EncodeToString(nestedRequests(2900)),
	}
}

func nestedRequests(count int) []byte {
	return livekit.Marshal(&livekit.WrappedJoinRequest{JoinRequest: bytes.Repeat([]byte("\x2a\x00"), count)})
}

// An unauthenticated request is rejected before anything but its token is decoded.
func TestAnonymousRequestsNeedLittleMemory(t *testing.T) {
	// limit is in bytes, on top of up to 60 kB for the request itself.
	const limit = 64 << 10
	w := newWorld(t, nil)
	r, _ := w.mirror()
	for route, serve := range map[string]http.HandlerFunc{
		"/rtc": w.ServeHTTP, "/rtc/v1": w.ServeHTTP, "/rtc/validate": w.ServeHTTP, "/rtc/v1/validate": w.ServeHTTP,
		"/none": w.ServeHTTP, "/rtc of a room that is gone": w.Gone, "/rtc/v1 of a room that is gone": w.Gone,
	} {
		path, _, _ := strings.Cut(route, " ")
		for name, query := range hostileQueries() {
			for _, room := range []string{r.Name(), "x"} {
				answer := httptest.NewRecorder()
				took := alloctest.Least(func() {
					at := &url.URL{Path: Path + room + path, RawQuery: query}
					request := &http.Request{Method: http.MethodGet, Proto: "HTTP/1.1", Header: http.Header{}, URL: at}
					answer = httptest.NewRecorder()
					serve(answer, request)
				}, 0)
				if took > limit {
					t.Errorf("%s with %s takes %d bytes of memory", route, name, took)
				}
				// Even Gone returns a 4xx status, because none of these requests resumes a connection.
				if answer.Code < 400 || answer.Code >= 500 {
					t.Errorf("%s with %s returns %d", route, name, answer.Code)
				}
			}
		}
	}
}
