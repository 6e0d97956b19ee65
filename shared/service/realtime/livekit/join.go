package livekit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"

	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/httpserver"
)

const (
	// MaxJoin is the maximum decompressed size of a join request, in bytes.
	MaxJoin = 128 << 10
	// MaxResume is the maximum size, in bytes, of a request that may resume but not join.
	MaxResume = 4 << 10
)

type Version int

// A client has one peer connection in version 1, and one for each direction in version 0.
const (
	Version0 Version = iota
	Version1
)

type Join struct {
	Version Version
	// Resume is the sid of a participant that lost its signaling connection, or empty.
	Resume string
	// Request is the first message of version 1. It is nil in version 0.
	Request *JoinRequest
}

// ReadJoin reads the request that opens a room's signaling connection. most is its maximum size in bytes.
//
// Errors: fault.Invalid.
func ReadJoin(r *http.Request, version Version, most int) (join Join, err error) {
	join = Join{Version: version, Request: &JoinRequest{}}
	if version == Version0 {
		if again := httpserver.Parameter(r, "reconnect"); again == "1" || again == "true" {
			join.Resume = httpserver.Parameter(r, "sid")
		}
		return join, nil
	}
	if wrapped := httpserver.Parameter(r, "join_request"); wrapped != "" {
		if join.Request, err = unwrap(wrapped, most); err != nil {
			return Join{}, err
		}
	}
	if join.Request.Reconnect {
		join.Resume = join.Request.ParticipantSid
	}
	return join, nil
}

// TokenOf returns the token from a request's query or Authorization header.
func TokenOf(r *http.Request) string {
	if token := httpserver.Parameter(r, "access_token"); token != "" {
		return token
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

func unwrap(text string, most int) (*JoinRequest, error) {
	if base64.RawURLEncoding.DecodedLen(len(text)) > most {
		return nil, fault.New(fault.Invalid, "join_request has more than %d bytes.", most)
	}
	malformed := fault.New(fault.Invalid, "join_request is malformed or, when expanded, has more than %d bytes.", most)
	// Some clients omit the padding.
	wrapped, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, malformed
	}
	var envelope WrappedJoinRequest
	if Unmarshal(wrapped, &envelope) != nil {
		return nil, malformed
	}
	content := envelope.JoinRequest
	if envelope.Compression == Gzip {
		if content, err = gunzip(content, most); err != nil {
			return nil, malformed
		}
	}
	request := &JoinRequest{}
	if Unmarshal(content, request) != nil {
		return nil, malformed
	}
	return request, nil
}

// gunzip decompresses up to the given number of bytes, and fails if there are more.
func gunzip(compressed []byte, most int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(content) > most {
		err = errors.New("livekit: too long")
	}
	return content, err
}
