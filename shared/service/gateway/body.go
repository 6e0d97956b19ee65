package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"cutroom/shared/service/gateway/apierror"
)

const (
	// MaxBody limits a request's body in bytes. A larger one gets a 413.
	MaxBody = 32 << 20
	// trustedLength is the largest buffer that is allocated for a declared length before its bytes
	// have arrived. Above this size, a quarter of them must have arrived.
	trustedLength = 64 << 10
	// maxKeptRequest is the largest request buffer that is kept for reuse, in bytes. A stream holds
	// its request until it ends, and a small request may have got a large buffer.
	maxKeptRequest = 8 << 10
)

var requestBuffers = sync.Pool{New: func() any { return new([]byte) }}

func putRequestBuffer(buffer *[]byte) {
	if cap(*buffer) <= maxKeptRequest {
		requestBuffers.Put(buffer)
	}
}

// readBody reads a request of at most MaxBody, into body if that is large enough. It acquires
// memory beyond freeBody when bytes arrive.
func readBody(body []byte, r *http.Request, memory *reservation) ([]byte, *apierror.Error) {
	declared := r.ContentLength
	if declared > MaxBody {
		return nil, tooLarge()
	}
	// One byte more than declared, to see the end. Only from then on does the server watch whether
	// the caller leaves.
	room := int64(512)
	if declared >= room {
		room = min(declared, trustedLength) + 1
	}
	for {
		if int64(cap(body)) < room {
			grown, apiErr := grow(body, room, r, memory)
			if apiErr != nil {
				return nil, apiErr
			}
			body = grown
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if len(body) > MaxBody {
			return nil, tooLarge()
		}
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, bodyError(err)
		}
		if len(body) < cap(body) {
			continue
		}
		if room = 2 * int64(cap(body)); declared < 2*room && declared >= int64(len(body)) {
			room = declared + 1
		}
		room = min(room, MaxBody+1)
	}
}

// grow returns a larger buffer with the content of body. Both count while the content is copied.
func grow(body []byte, room int64, r *http.Request, memory *reservation) ([]byte, *apierror.Error) {
	if room > freeBody {
		if apiErr := memory.acquire(r.Context(), room); apiErr != nil {
			return nil, apiErr
		}
	}
	grown := make([]byte, len(body), room)
	copy(grown, body)
	if before := int64(cap(body)); before > freeBody {
		memory.release(before)
	}
	return grown, nil
}

func tooLarge() *apierror.Error {
	return &apierror.Error{
		Status: http.StatusRequestEntityTooLarge, Type: apierror.InvalidRequest, Code: apierror.RequestTooLarge,
		Message: fmt.Sprintf("The request's body is larger than %d bytes.", MaxBody),
	}
}
