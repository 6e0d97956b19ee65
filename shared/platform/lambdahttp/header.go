package lambdahttp

import (
	"net/http"
	"strings"
)

// sentHeader returns the header without trailers, and without connection fields, which API Gateway handles.
func sentHeader(header http.Header) http.Header {
	sent := header.Clone()
	for _, declared := range header["Trailer"] {
		for field := range strings.SplitSeq(declared, ",") {
			sent.Del(strings.TrimSpace(field))
		}
	}
	for field := range sent {
		if strings.HasPrefix(field, http.TrailerPrefix) {
			delete(sent, field)
		}
	}
	for _, field := range []string{"Connection", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade"} {
		delete(sent, field)
	}
	return sent
}

func hasNoBody(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}
