package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview"
)

// benchModel is the model whose edits are measured.
const benchModel = "gen-2.5"

// edit is one edit of a clip without the service: by the engine, or by the ffmpeg
// command lines that the engine runs.
type edit struct {
	prompt  string
	spec    engine.Spec
	preview *preview.Engine
	// commands are the recorded command lines, the working folder first. Their
	// scratch files are kept in folder.
	commands [][]string
	folder   string
}

// newEdit runs the engine once on the clip and keeps its command lines.
func newEdit(ctx context.Context, folder, clip, prompt string) (*edit, error) {
	known, err := catalog.Default("gen")
	if err != nil {
		return nil, err
	}
	m, ok := known.Find(benchModel)
	if !ok {
		return nil, fmt.Errorf("the catalog has no %s", benchModel)
	}
	tools, err := ffmpeg.Find(ctx, known.Limits)
	if err != nil {
		return nil, err
	}
	info, err := tools.ProbeVideo(ctx, clip, "video/mp4")
	if err != nil {
		return nil, err
	}
	e := &edit{prompt: prompt, preview: preview.New(tools)}
	if e.folder, err = os.MkdirTemp(folder, "edit-"); err != nil {
		return nil, err
	}
	e.spec = engine.Spec{
		Job: "bench", Model: m.ID, Kind: m.Kind, Prompt: prompt, Seed: 1,
		Options: map[string]any{"resolution": "720p", "enhance_prompt": true, "self_anchor": true},
		Data:    &engine.Input{Path: clip, MIME: "video/mp4", Info: info},
		Size:    m.Sizes["720p"].Fit(catalog.Size{Width: info.Width, Height: info.Height}),
		FPS:     m.FPS, Duration: info.Duration,
	}
	if err := e.record(ctx, known.Limits); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *edit) close() { os.RemoveAll(e.folder) }

// record runs the engine with a program in place of ffmpeg that records its
// arguments and then executes ffmpeg.
func (e *edit) record(ctx context.Context, limits catalog.Limits) error {
	notes, err := os.MkdirTemp(e.folder, "notes-")
	if err != nil {
		return err
	}
	real, err := exec.LookPath("ffmpeg")
	if err != nil {
		return err
	}
	// The process id distinguishes calls, and the time orders them.
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\0' \"$PWD\" \"$@\" >'%s/'\"$(date +%%s%%N)-$$\"\nexec '%s' \"$@\"\n",
		notes, real)
	instead, err := os.MkdirTemp(e.folder, "bin-")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(instead, "ffmpeg"), []byte(script), 0o700); err != nil {
		return err
	}
	path := os.Getenv("PATH")
	os.Setenv("PATH", instead+string(os.PathListSeparator)+path)
	defer os.Setenv("PATH", path)
	tools, err := ffmpeg.Find(ctx, limits)
	if err != nil {
		return err
	}
	// The calls that Find made are not part of an edit.
	if err := empty(notes); err != nil {
		return err
	}
	recorded, err := os.MkdirTemp(e.folder, "recorded-")
	if err != nil {
		return err
	}
	if err := e.run(ctx, preview.New(tools), recorded); err != nil {
		return err
	}
	calls, err := os.ReadDir(notes)
	if err != nil {
		return err
	}
	for _, call := range calls {
		note, err := os.ReadFile(filepath.Join(notes, call.Name()))
		if err != nil {
			return err
		}
		e.commands = append(e.commands, strings.Split(strings.TrimSuffix(string(note), "\x00"), "\x00"))
	}
	if len(e.commands) == 0 {
		return fmt.Errorf("the engine ran no ffmpeg")
	}
	return nil
}

// engine does the edit by the engine.
func (e *edit) engine(ctx context.Context) error {
	scratch, err := os.MkdirTemp(e.folder, "scratch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	return e.run(ctx, e.preview, scratch)
}

func (e *edit) run(ctx context.Context, by engine.Engine, scratch string) error {
	spec := e.spec
	spec.Folder, spec.Output = scratch, filepath.Join(scratch, "output.mp4")
	_, err := by.Run(ctx, spec, func(engine.Progress) {})
	return err
}

// bare does the edit by the recorded command lines alone.
func (e *edit) bare(ctx context.Context) error {
	// The engine's progress goes to the descriptor after the standard ones.
	progress, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer progress.Close()
	for _, command := range e.commands {
		var complaints bytes.Buffer
		run := exec.CommandContext(ctx, "ffmpeg", command[1:]...)
		run.Dir, run.Stderr = command[0], &complaints
		run.ExtraFiles = []*os.File{progress}
		if err := run.Run(); err != nil {
			return fmt.Errorf("ffmpeg %s: %w\n%s", strings.Join(command[1:], " "), err, &complaints)
		}
	}
	return nil
}

// empty removes the content of a folder.
func empty(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
