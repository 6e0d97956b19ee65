package realtime

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"cutroom/shared/platform/httpserver"
)

// webSocketVersion is the only version of the WebSocket protocol (RFC 6455, section 4.1).
const webSocketVersion = "13"

var exposed = []string{"X-Request-Id, Allow"}

// handshake returns the error status for a request that is not a valid WebSocket handshake, otherwise 0.
func handshake(r *http.Request) (status int, detail string) {
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-WebSocket-Key"))
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, "Method Not Allowed"
	case !r.ProtoAtLeast(1, 1), r.Method == http.MethodHead,
		!hasToken(r.Header, "Connection", "upgrade"), !hasToken(r.Header, "Upgrade", "websocket"):
		return http.StatusUpgradeRequired, "This path requires a WebSocket upgrade."
	case r.Header.Get("Sec-WebSocket-Version") != webSocketVersion:
		return http.StatusUpgradeRequired, "This path requires WebSocket version " + webSocketVersion + "."
	case err != nil || len(key) != 16 || len(r.Header.Values("Sec-WebSocket-Key")) != 1:
		return http.StatusBadRequest, "The header Sec-WebSocket-Key must be 16 bytes in base64."
	}
	return 0, ""
}

// hasToken reports whether a header field lists the token, ignoring case.
func hasToken(header http.Header, field, word string) bool {
	for _, line := range header.Values(field) {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), word) {
				return true
			}
		}
	}
	return false
}

// writePlain sends a response in the media service's error format if no WebSocket was opened.
func (s *Server) writePlain(w http.ResponseWriter, r *http.Request, status int, detail string) {
	header := w.Header()
	s.config.Origins.Allow(header, r, exposed)
	if httpserver.IsPreflight(r) {
		httpserver.AnswerPreflight(w, r, http.MethodGet)
		return
	}
	switch status {
	case http.StatusMethodNotAllowed:
		header.Set("Allow", "GET, HEAD")
	case http.StatusUpgradeRequired:
		header.Set("Connection", "Upgrade")
		header.Set("Upgrade", "websocket")
		header.Set("Sec-WebSocket-Version", webSocketVersion)
	}
	writeDetail(w, status, detail)
}

func writeJSON(w http.ResponseWriter, status int, content map[string]string) {
	text, _ := json.Marshal(content)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // fails if the client has disconnected
}
