package livekit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/protobuf/proto"

	"cutroom/shared/domain/fault"
)

// maxJoin is how long a join request may be, in bytes, also once it is expanded: it
// contains one session description.
const maxJoin = 256 << 10

// Version is one of the two ways to signal.
type Version int

// In version 1 a client has one peer connection, in version 0 one to publish by and one
// to subscribe by.
const (
	Version0 Version = iota
	Version1
)

// Join is a request to open a room's signalling.
type Join struct {
	Version Version
	// Token is what admits to the room.
	Token string
	// Resume is the sid of the participant whose signalling was lost and is to go on,
	// empty for one that joins.
	Resume string
	// Request is what version 1 says at once, empty in version 0.
	Request *JoinRequest
}

// ReadJoin reads the request that opens a room's signalling in the version.
//
// Errors: fault.Invalid.
func ReadJoin(r *http.Request, version Version) (join Join, err error) {
	query := r.URL.Query()
	join = Join{Version: version, Token: tokenOf(r, query), Request: &JoinRequest{}}
	if version == Version0 {
		if query.Get("reconnect") == "1" || query.Get("reconnect") == "true" {
			join.Resume = query.Get("sid")
		}
		return join, nil
	}
	if wrapped := query.Get("join_request"); wrapped != "" {
		if join.Request, err = unwrap(wrapped); err != nil {
			return Join{}, err
		}
	}
	if join.Request.GetReconnect() {
		join.Resume = join.Request.GetParticipantSid()
	}
	return join, nil
}

// tokenOf returns the token of a request: browsers have no header fields of their own
// for a WebSocket.
func tokenOf(r *http.Request, query url.Values) string {
	if token := query.Get("access_token"); token != "" {
		return token
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

func errJoin() error { return fault.New(fault.Invalid, "join_request is no join request.") }

// unwrap decodes the parameter join_request.
//
// Errors: fault.Invalid.
func unwrap(text string) (*JoinRequest, error) {
	// Clients differ in whether they pad.
	wrapped, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, errJoin()
	}
	var envelope WrappedJoinRequest
	if proto.Unmarshal(wrapped, &envelope) != nil {
		return nil, errJoin()
	}
	content := envelope.GetJoinRequest()
	if envelope.GetCompression() == WrappedJoinRequest_GZIP {
		if content, err = expand(content); err != nil {
			return nil, err
		}
	}
	request := &JoinRequest{}
	if len(content) > maxJoin || proto.Unmarshal(content, request) != nil {
		return nil, errJoin()
	}
	return request, nil
}

// expand expands what was compressed by gzip.
//
// Errors: fault.Invalid.
func expand(compressed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, errJoin()
	}
	content, err := io.ReadAll(io.LimitReader(reader, maxJoin+1))
	if err != nil {
		return nil, errJoin()
	}
	return content, nil
}
