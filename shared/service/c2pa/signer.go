// Package c2pa signs results with the operator's identity, and reads the Content Credentials of
// any file. Package platform/c2pa calls the library.
package c2pa

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/c2pa"
)

type Config struct {
	Library  *c2pa.Library
	Identity *Identity
	// Generative is true if the engine uses a trained model.
	Generative bool
	Version    string
	Now        func() time.Time
	Logger     *slog.Logger
	// InputTime is the time limit for including the inputs' credentials, in addition to an
	// allowance for their sizes. 0 means half a minute.
	InputTime time.Duration
}

type Signer struct{ config Config }

// Call Check before using the signer.
func New(c Config) *Signer {
	if c.InputTime == 0 {
		c.InputTime = 30 * time.Second
	}
	return &Signer{config: c}
}

// Check signs a small picture, to detect an unsupported certificate or machine at startup.
func (s *Signer) Check(ctx context.Context, folder string) error {
	folder, err := os.MkdirTemp(folder, "credentials-")
	if err != nil {
		return fmt.Errorf("create a scratch folder: %w", err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "picture.png")
	if err := os.WriteFile(path, picture(), 0o600); err != nil {
		return fmt.Errorf("write a picture to sign: %w", err)
	}
	spec := engine.Spec{Model: "check", Kind: catalog.Image, Output: path}
	_, err = s.Sign(ctx, spec, engine.Outcome{Engine: "check"}, "image/png", filepath.Join(folder, "signed.png"))
	return err
}

// Sign copies the engine's output to the path and adds Content Credentials. They state when and how the result was
// made, and by which model, engine and service. They also contain the hashes and credentials of its inputs, but no
// prompt, file name or account. If an input's credentials cannot be read in time, only its hash is included. Sign may
// create temporary files in the path's folder.
func (s *Signer) Sign(
	ctx context.Context, spec engine.Spec, made engine.Outcome, mime, path string,
) (job.Credentials, error) {
	now := s.config.Now()
	inputs, err := inputsOf(ctx, spec)
	if err != nil {
		return job.Credentials{}, err
	}
	generative := s.config.Generative && !made.Untrained
	w := work{spec: spec, made: made, mime: mime, inputs: inputs, generative: generative, at: now}
	err = s.writeWithin(ctx, w, path)
	if err != nil && ctx.Err() == nil && len(inputs) > 0 {
		s.config.Logger.Warn("omitting the credentials of an input", "job", spec.Job, "error", err)
		w.bare = true
		err = s.write(ctx, w, path)
	}
	if err != nil {
		return job.Credentials{}, err
	}
	return job.Credentials{SourceType: w.sourceType(), SignedBy: s.config.Identity.Name(), SignedAt: now}, nil
}

type input struct {
	label, relationship, mime, path, sha256 string
}

func inputsOf(ctx context.Context, spec engine.Spec) ([]input, error) {
	var inputs []input
	for _, in := range []struct {
		file                *engine.Input
		label, relationship string
	}{
		{spec.Data, catalog.DataField, "parentOf"}, {spec.Reference, catalog.ReferenceField, "inputTo"},
	} {
		if in.file == nil {
			continue
		}
		sum, err := hash(ctx, in.file.Path)
		if err != nil {
			return nil, fmt.Errorf("hash %s: %w", in.label, err)
		}
		inputs = append(inputs, input{in.label, in.relationship, in.file.MIME, in.file.Path, sum})
	}
	return inputs, nil
}

func hash(ctx context.Context, path string) (string, error) {
	file, err := engine.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	for err == nil {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(sum, file, 8<<20)
		}
	}
	if !errors.Is(err, io.EOF) {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// slowest is the lowest expected speed of reading, hashing and copying, in bytes per second.
const slowest = 10_000_000

// writeWithin calls write with a time limit, because a small file can keep the library busy for minutes.
func (s *Signer) writeWithin(ctx context.Context, w work, path string) error {
	if len(w.inputs) == 0 {
		return s.write(ctx, w, path)
	}
	paths, size := []string{w.spec.Output}, int64(0)
	for _, in := range w.inputs {
		paths = append(paths, in.path)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("check the output to sign: %w", err)
		}
		size += info.Size()
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.InputTime+time.Duration(size/slowest)*time.Second)
	defer cancel()
	return s.write(ctx, w, path)
}

// write leaves no file behind if it fails.
func (s *Signer) write(ctx context.Context, w work, path string) (err error) {
	manifest, err := w.manifest(s.config.Version)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), "credentials-")
	if err != nil {
		return fmt.Errorf("create a scratch folder: %w", err)
	}
	defer os.RemoveAll(folder)
	from, err := engine.OpenRegular(w.spec.Output)
	if err != nil {
		return fmt.Errorf("open the engine's output: %w", err)
	}
	defer from.Close()
	// O_EXCL: an engine's server could have created a symlink to any file on this machine.
	to, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create the signed file: %w", err)
	}
	defer func() {
		if err = errors.Join(err, to.Close()); err != nil {
			os.Remove(path)
		}
	}()
	signing := c2pa.Signing{
		Manifest: manifest, MIME: w.mime, From: from, To: to, Folder: folder, Signer: s.config.Identity,
	}
	if !w.bare {
		for _, in := range w.inputs {
			file, err := engine.OpenRegular(in.path)
			if err != nil {
				return fmt.Errorf("open %s: %w", in.label, err)
			}
			defer file.Close()
			if err := checkBoxes(file); err != nil {
				return fmt.Errorf("%s: %w", in.label, err)
			}
			signing.Ingredients = append(signing.Ingredients, c2pa.Ingredient{JSON: in.json(), MIME: in.mime, File: file})
		}
	}
	return s.config.Library.Sign(ctx, signing)
}
