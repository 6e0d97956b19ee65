package main

import (
	"bytes"
	"context"
	"errors"
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

const benchModel = "gen-2.5"

// edit is one edit of a clip, done by the engine or by the ffmpeg command lines that the engine runs.
type edit struct {
	prompt  string
	spec    engine.Spec
	preview *preview.Engine
	// commands holds the recorded command lines, each starting with the working folder. The field folder is the path
	// of their scratch files.
	commands [][]string
	folder   string
}

// newEdit runs the engine once on the clip and records its command lines.
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
		FPS:     m.FPS, Duration: info.Duration, Thumbnails: true,
	}
	if err := e.record(ctx, tools); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *edit) close() { os.RemoveAll(e.folder) }

// record runs the engine and records its ffmpeg command lines without the sandbox.
func (e *edit) record(ctx context.Context, tools *ffmpeg.Tools) error {
	recorded, err := os.MkdirTemp(e.folder, "recorded-")
	if err != nil {
		return err
	}
	notes := &recorder{runner: tools}
	if err := e.run(ctx, preview.New(notes), recorded); err != nil {
		return err
	}
	for _, command := range notes.commands {
		line := []string{command.Folder, "-nostdin", "-hide_banner", "-y", "-loglevel", "error", "-nostats"}
		for _, input := range command.Inputs {
			line = append(append(line, input.Options...), "-i", "file:"+input.Path)
		}
		e.commands = append(e.commands, append(line, command.Args...))
	}
	if len(e.commands) == 0 {
		return errors.New("the engine ran no ffmpeg")
	}
	return nil
}

type recorder struct {
	runner   preview.Runner
	commands []ffmpeg.Command
}

func (r *recorder) Run(ctx context.Context, command ffmpeg.Command) error {
	r.commands = append(r.commands, command)
	return r.runner.Run(ctx, command)
}

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

func (e *edit) bare(ctx context.Context) error {
	for _, command := range e.commands {
		var complaints bytes.Buffer
		run := exec.CommandContext(ctx, "ffmpeg", command[1:]...)
		run.Dir, run.Stderr = command[0], &complaints
		if err := run.Run(); err != nil {
			return fmt.Errorf("ffmpeg %s: %w\n%s", strings.Join(command[1:], " "), err, &complaints)
		}
	}
	return nil
}
