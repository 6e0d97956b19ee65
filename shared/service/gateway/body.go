package gateway

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"sync"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
)

const (
	// MaxBody is the maximum size of a request body in bytes. A larger body is rejected with a 413.
	MaxBody = 32 << 20
	// maxCompressed limits compressed bodies, because decompressing a MiB that contains no data takes up to 0.15
	// seconds.
	maxCompressed = 8 << 20
	// trustedLength is the largest buffer that is allocated based only on a declared length. A larger buffer is
	// allocated once a quarter of the bytes have arrived.
	trustedLength = 64 << 10
	// maxKeptRequest is the size in bytes of the largest request buffer that is kept for reuse. A stream keeps
	// its buffer until it ends, and even a small request may have been given a large buffer.
	maxKeptRequest = 8 << 10
)

var requestBuffers = sync.Pool{New: func() any { return new([]byte) }}

func putRequestBuffer(buffer *[]byte) {
	if cap(*buffer) <= maxKeptRequest {
		requestBuffers.Put(buffer)
	} else {
		putLargeBuffer(*buffer)
	}
}

// largeBuffers keeps buffers of 64 KiB to 512 KiB, by the power of two below their sizes, until the garbage collector
// frees them. Allocating and clearing such buffers takes longer than reading into them.
var largeBuffers [3]sync.Pool

func classOf(size int) int { return bits.Len(uint(size)) - bits.Len(trustedLength) }

func putLargeBuffer(buffer []byte) {
	if class := classOf(cap(buffer)); class >= 0 && class < len(largeBuffers) {
		largeBuffers[class].Put(&buffer)
	}
}

// newBuffer returns a buffer of at least the given size.
func newBuffer(size int) []byte {
	if class := classOf(size); class >= 0 && class < len(largeBuffers) {
		if kept, ok := largeBuffers[class].Get().(*[]byte); ok && cap(*kept) >= size {
			return (*kept)[:0]
		}
	}
	return make([]byte, 0, size)
}

// readBody reads a request of at most MaxBody bytes into body, which grows as needed. It acquires
// memory beyond freeBody as bytes arrive.
func readBody(body []byte, r *http.Request, memory *reservation) ([]byte, *apierror.Error) {
	if r.ContentLength > MaxBody {
		return nil, tooLarge()
	}
	if r.Header["Content-Encoding"] == nil {
		return readPlainBody(body, r, memory)
	}
	isLarge, held, turns := false, int64(0), memory.memory.decoders
	apiErr := decompress(r, maxCompressed, func(bytes int64, large bool) error {
		if large && !isLarge {
			waiting, cancel := context.WithTimeout(r.Context(), memory.memory.wait)
			defer cancel()
			if isLarge = turns.Take(waiting, memory.account); !isLarge {
				busy := tooMuchInFlight(true)
				busy.Message = "Another large compressed body of this account is arriving. Send large bodies uncompressed."
				return busy
			}
		}
		if apiErr := memory.acquire(r.Context(), bytes); apiErr != nil {
			return apiErr
		}
		held += bytes
		return nil
	})
	defer func() {
		memory.release(held)
		if isLarge {
			turns.Release(memory.account)
		}
	}()
	if apiErr != nil {
		return nil, apiErr
	}
	return readPlainBody(body, r, memory)
}

func readPlainBody(body []byte, r *http.Request, memory *reservation) ([]byte, *apierror.Error) {
	declared := r.ContentLength
	// The extra byte detects EOF. Only after EOF does the server notice a disconnect.
	size := int64(512)
	if declared >= size {
		size = min(declared+1, trustedLength)
	}
	for {
		if int64(cap(body)) < size {
			grown, apiErr := grow(body, size, r, memory)
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
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, bodyError(err)
		}
		if len(body) < cap(body) {
			continue
		}
		if size = 2 * int64(cap(body)); declared < 2*size && declared >= int64(len(body)) {
			size = declared + 1
		}
		size = min(size, MaxBody+1)
	}
}

func decompress(r *http.Request, most int64, reserve httpserver.Reserve) *apierror.Error {
	if httpserver.Decompress(r, most, reserve) {
		return nil
	}
	return &apierror.Error{
		Status: http.StatusUnsupportedMediaType, Type: apierror.InvalidRequest,
		Message: "The Content-Encoding of the body is not supported. Use " + httpserver.AcceptedCodings + " or none.",
	}
}

// grow copies body to a larger buffer. Both buffers count as memory in use until the copy is done.
func grow(body []byte, size int64, r *http.Request, memory *reservation) ([]byte, *apierror.Error) {
	grown := newBuffer(int(size))
	if size = int64(cap(grown)); size > freeBody {
		if apiErr := memory.acquire(r.Context(), size); apiErr != nil {
			return nil, apiErr
		}
	}
	grown = append(grown, body...)
	if before := int64(cap(body)); before > freeBody {
		putLargeBuffer(body)
		memory.release(before)
	}
	return grown, nil
}

func tooLarge() *apierror.Error {
	return &apierror.Error{
		Status: http.StatusRequestEntityTooLarge, Type: apierror.InvalidRequest, Code: apierror.RequestTooLarge,
		Message: fmt.Sprintf("The request body is larger than %d bytes.", MaxBody),
	}
}
