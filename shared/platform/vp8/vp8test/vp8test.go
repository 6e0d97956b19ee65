// Package vp8test finds the VP8 library for tests.
package vp8test

import (
	"context"
	"sync"

	"cutroom/shared/platform/sandbox"
	"cutroom/shared/platform/vp8"
	"cutroom/shared/testkit/await"
)

// Find returns the library. A frame may take longer than in production, because machines that run tests are busy.
var Find = sync.OnceValues(func() (*vp8.Library, error) {
	box, err := sandbox.New(context.Background())
	if err != nil {
		return nil, err
	}
	l, err := vp8.Find(context.Background(), box)
	if err == nil {
		l.FrameTime = await.Max
	}
	return l, err
})
