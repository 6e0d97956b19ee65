package c2pa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"cutroom/shared/platform/c2pa/helper"
	"cutroom/shared/platform/sandbox"
)

const (
	// spareSpace is the default for [Library.Within], in bytes.
	spareSpace = 2 << 30
	// Hashing 2 GB three times takes about 15 s of CPU time.
	processorTime = 2 * time.Minute
	// A busy disk may take a minute for 2 GB.
	workTime = 5 * time.Minute
	// A signed file may be this much larger than its source, in bytes, because the inputs' Content
	// Credentials are copied into it.
	MaxGrowth = 32 << 20
	maxOutput = 16 << 20
	// maxSigned limits the data to sign, in bytes. Only the claim is signed.
	maxSigned = 1 << 20
	// A helper's pipes may stay open for drainTime after it has exited.
	drainTime = 5 * time.Second
)

type call struct {
	order  helper.Order
	files  []*os.File
	folder string
	most   int64
	sign   func([]byte) ([]byte, error)
}

func (l *Library) run(ctx context.Context, c call) (helper.Answer, error) {
	// The process dies with the thread that started it: see [sandbox.Sandbox.Command].
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	theirIn, in, err := os.Pipe()
	if err != nil {
		return helper.Answer{}, fmt.Errorf("c2pa: %w", err)
	}
	defer in.Close()
	defer theirIn.Close()
	out, theirOut, err := os.Pipe()
	if err != nil {
		return helper.Answer{}, fmt.Errorf("c2pa: %w", err)
	}
	defer out.Close()
	defer theirOut.Close()
	cmd, start, err := l.box.Command(ctx, sandbox.Plan{
		Program: l.self, Args: []string{helper.Name, l.found.Path}, Inputs: l.found.Files, Extra: c.files,
		Folder: c.folder, Memory: l.found.Memory(l.spare), MaxFile: c.most, ProcessorTime: processorTime,
	})
	if err != nil {
		return helper.Answer{}, err
	}
	var said sandbox.Log
	cmd.Env, cmd.WaitDelay = environment(c.folder), drainTime
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, &said
	if err := cmd.Start(); err != nil {
		start.Ended()
		return helper.Answer{}, fmt.Errorf("c2pa: %w", err)
	}
	theirIn.Close()
	theirOut.Close()
	answer, talked := c.converse(in, out)
	if talked != nil {
		_ = cmd.Process.Kill() // fails if the helper has exited
	}
	return answer, c.outcome(ctx, answer, talked, ended(cmd, start, &said))
}

// ended waits until a helper exits. It returns nil if the helper has succeeded.
func ended(cmd *exec.Cmd, start *sandbox.Start, said *sandbox.Log) error {
	err := cmd.Wait()
	if ran, why := start.Ended(); !ran {
		return fmt.Errorf("c2pa: the helper was not started: %s", why)
	}
	if err != nil {
		return fmt.Errorf("%w: %w: %s", ErrLost, err, said)
	}
	return nil
}

func (c call) outcome(ctx context.Context, answer helper.Answer, talked, ended error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case ended != nil:
		return errors.Join(ended, talked)
	case talked != nil:
		return fmt.Errorf("%w: %w", ErrLost, talked)
	case answer.None:
		return ErrNone
	case answer.Elsewhere:
		return ErrElsewhere
	case answer.Problem != "":
		return &Refusal{answer.Problem}
	}
	return nil
}

// converse sends the order, signs once if the helper requests it, and returns the helper's last line.
func (c call) converse(in io.Writer, out io.Reader) (helper.Answer, error) {
	to, from := json.NewEncoder(in), json.NewDecoder(io.LimitReader(out, maxOutput))
	if err := to.Encode(c.order); err != nil {
		return helper.Answer{}, err
	}
	for signed := false; ; signed = true {
		var answer helper.Answer
		if err := from.Decode(&answer); err != nil {
			return helper.Answer{}, err
		}
		if answer.ToSign == nil {
			return answer, nil
		}
		if signed || c.sign == nil || len(answer.ToSign) > maxSigned {
			return helper.Answer{}, errors.New("the helper requested a second signature or one for too many bytes")
		}
		signature, err := c.sign(answer.ToSign)
		if err != nil {
			return helper.Answer{}, fmt.Errorf("sign: %w", err)
		}
		if err := to.Encode(signature); err != nil {
			return helper.Answer{}, err
		}
	}
}
