package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	c2palib "cutroom/shared/platform/c2pa"
	"cutroom/shared/platform/sandbox"
	"cutroom/shared/service/c2pa"
	"cutroom/shared/testkit/c2patest"
)

const (
	// signingSize is the approximate size of the signed video, in bytes.
	signingSize   = 100 << 20
	signingRounds = 5
	// signingBar is the maximum time for signing a result, as a multiple of the time for copying and hashing it.
	// Storing a result requires copying and hashing in any case.
	signingBar = 6
)

// signing adds Content Credentials to a large result as a worker does. The floor copies and hashes the result.
func (b *bench) signing(ctx context.Context) error {
	signer, err := newSigner(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp(b.folder, "signing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	video, size, err := b.longClip(ctx, folder)
	if err != nil {
		return err
	}
	to := filepath.Join(folder, "result.mp4")
	spec := engine.Spec{Model: benchModel, Kind: catalog.TextToVideo, Output: video}
	var measured, floor []time.Duration
	for range signingRounds {
		for _, step := range []struct {
			into *[]time.Duration
			do   func() error
		}{
			{&floor, func() error { return copyAndHash(to, video) }},
			{&measured, func() error {
				_, err := signer.Sign(ctx, spec, engine.Outcome{Engine: "bench"}, "video/mp4", to)
				return err
			}},
		} {
			begun := time.Now()
			if err := step.do(); err != nil {
				return err
			}
			*step.into = append(*step.into, time.Since(begun))
			if err := os.Remove(to); err != nil {
				return err
			}
		}
	}
	b.table.add(row{
		what:     fmt.Sprintf("signing an MP4 of %d MB, and verifying it", size/1e6),
		measured: short(median(measured)), floor: short(median(floor)) + " to copy and hash it",
		ratio: ratio(median(measured), median(floor)), bar: fmt.Sprintf("%d x", signingBar),
		verdict: verdictOf(median(measured) <= signingBar*median(floor)),
	})
	return nil
}

func newSigner(ctx context.Context) (*c2pa.Signer, error) {
	path, err := c2patest.Find()
	if err != nil {
		return nil, err
	}
	box, err := sandbox.New(ctx)
	if err != nil {
		return nil, err
	}
	library, err := c2palib.Find(ctx, box, path)
	if err != nil {
		return nil, err
	}
	text, err := c2pa.NewIdentity(time.Now(), rand.Reader)
	if err != nil {
		return nil, err
	}
	identity, err := c2pa.ParseIdentity(text, text, time.Now(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return c2pa.New(c2pa.Config{
		Library: library, Identity: identity, Generative: true, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}), nil
}

// longClip makes a video by repeating the clip, and returns its path and size in bytes.
func (b *bench) longClip(ctx context.Context, folder string) (path string, size int64, err error) {
	clip, err := os.Stat(b.clip)
	if err != nil {
		return "", 0, err
	}
	path = filepath.Join(folder, "long.mp4")
	out, err := exec.CommandContext(ctx, "ffmpeg", "-v", "error", "-stream_loop", fmt.Sprint(signingSize/clip.Size()),
		"-i", b.clip, "-c", "copy", path).CombinedOutput()
	if err != nil {
		return "", 0, fmt.Errorf("make a long video: %w\n%s", err, out)
	}
	made, err := os.Stat(path)
	if err != nil {
		return "", 0, err
	}
	return path, made.Size(), nil
}

func copyAndHash(to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.MultiWriter(target, sha256.New()), source)
	if closed := target.Close(); err == nil {
		err = closed
	}
	return err
}
