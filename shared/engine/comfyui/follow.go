package comfyui

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"cutroom/shared/engine"
	"cutroom/shared/platform/boundedjson"
)

// settleEvery is how often the history is checked for a run that should appear there soon.
const settleEvery = 50 * time.Millisecond

func (r *run) follow(ctx context.Context, stop context.CancelCauseFunc, listening *listener,
	m *meter) (*record, error) {
	r.progress(engine.Progress{Fraction: prepared, Stage: "wait"})
	stalled := time.AfterFunc(r.engine.stall, func() { stop(errStalled) })
	defer stalled.Stop()
	wait := r.engine.pollEvery
	poll := time.NewTimer(wait)
	defer poll.Stop()
	ended := false
	for {
		select {
		case e := <-listening.events:
			r.alive()
			if e.preview != nil {
				r.show(e.preview, m)
			}
			if e.Data.Run != r.id {
				continue
			}
			stalled.Reset(r.engine.stall)
			if e.ends() {
				// A run ends only once. A repeated message must not delay the polling.
				if !ended {
					ended, wait = true, settleEvery
					poll.Reset(wait)
				}
				continue
			}
			if fraction, moved := m.note(e); moved {
				r.progress(progressAt(fraction))
			}
		case <-poll.C:
			done, where, err := r.poll(ctx)
			if done != nil || err != nil {
				return done, err
			}
			// A healthy run looks stalled without a WebSocket, or while it waits for other runs.
			if where == pending || !listening.connected.Load() {
				stalled.Reset(r.engine.stall)
			}
			wait = min(2*wait, r.engine.pollEvery)
			poll.Reset(wait)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func progressAt(fraction float64) engine.Progress {
	return engine.Progress{Fraction: prepared + (generated-prepared)*fraction, Stage: "generate"}
}

func (r *run) show(preview []byte, m *meter) {
	every := r.spec.PreviewEvery
	if every <= 0 || !r.shown.IsZero() && time.Since(r.shown) < every || engine.CheckPreview(preview) != nil {
		return
	}
	r.shown = time.Now()
	p := progressAt(m.reached)
	p.Preview = preview
	r.progress(p)
}

// poll returns the run's record if the run has ended. Otherwise it returns where the run is. It retries until the
// server has been silent for too long. If the server is gone, the run is lost.
func (r *run) poll(ctx context.Context) (*record, place, error) {
	bounded, cancel := context.WithTimeout(ctx, r.engine.pollEvery+lookTime)
	defer cancel()
	// Keep this order, because a run appears in the history before it leaves the queue.
	where, err := r.server.find(bounded, r.id)
	if err == nil && where == nowhere {
		var done *record
		if done, err = r.server.history(bounded, r.id); err == nil {
			r.alive()
			if done == nil {
				return nil, nowhere, failed("The engine stopped during the edit.", true,
					errors.New("comfyui: the server no longer knows the run"))
			}
			return done, nowhere, done.failure(r.spec.Prompt)
		}
	}
	var nonsense *nonsenseError
	var status *statusError
	switch {
	case err == nil:
		r.alive()
	case ctx.Err() != nil:
		return nil, nowhere, ctx.Err()
	case isAbsent(err), errors.As(err, &nonsense), errors.As(err, &status) && status.status < 500:
		return nil, nowhere, err
	}
	return nil, where, nil
}

type event struct {
	Type string `json:"type"`
	Data struct {
		Run string `json:"prompt_id"`
		// Node is nil after the last node.
		Node  *string         `json:"node"`
		Nodes json.RawMessage `json:"nodes"`
		Value float64         `json:"value"`
		Max   float64         `json:"max"`
	} `json:"data"`
	preview []byte
}

func (e event) ends() bool {
	switch e.Type {
	case "execution_success", "execution_error", "execution_interrupted":
		return true
	case "executing":
		return e.Data.Node == nil
	}
	return false
}

// meter computes a run's progress from messages. Each node counts once. If the workflow sets a sampler's number of
// steps, each of its steps counts as much as a node.
type meter struct {
	nodes, steps int
	current      string
	finished     map[string]bool
	stepped      map[string]float64
	reached      float64
}

const maxSteps = 1000

func newMeter(g graph) *meter {
	m := &meter{nodes: len(g), finished: map[string]bool{}, stepped: map[string]float64{}}
	for _, n := range g {
		number, _ := n.Inputs["steps"].(json.Number)
		if steps, err := number.Int64(); err == nil && steps > 0 && steps <= maxSteps {
			m.steps += int(steps)
		}
	}
	return m
}

// note returns the progress after the event e, from 0 to 1, and whether it has changed.
func (m *meter) note(e event) (fraction float64, moved bool) {
	switch e.Type {
	case "execution_start":
		return m.reached, true
	case "execution_cached":
		var cached []string
		_ = json.Unmarshal(e.Data.Nodes, &cached) // an invalid list is ignored
		for _, id := range cached[:min(len(cached), m.nodes)] {
			m.finish(id)
		}
	case "executing":
		m.finish(m.current)
		m.current = *e.Data.Node
	case "progress":
		// A node with more steps than the workflow sets, such as a tiled decoder, counts only once.
		if e.Data.Node == nil || len(*e.Data.Node) > maxID || !(e.Data.Max >= 1) || e.Data.Max > float64(m.steps) ||
			len(m.stepped) > m.nodes {
			return m.reached, false
		}
		m.stepped[*e.Data.Node] = min(max(e.Data.Value, 0), e.Data.Max)
	default:
		return m.reached, false
	}
	steps := 0.0
	for _, n := range m.stepped {
		steps += n
	}
	units := float64(min(len(m.finished), m.nodes)) + min(steps, float64(m.steps))
	m.reached = max(m.reached, units/float64(m.nodes+m.steps))
	return m.reached, true
}

// finish ignores ids beyond the number of nodes, so a misbehaving server cannot grow the set.
func (m *meter) finish(id string) {
	if id != "" && len(id) <= maxID && len(m.finished) < m.nodes {
		m.finished[id] = true
	}
}

// known is false for unknown messages. Nodes may send any type of message.
func parseEvent(text []byte) (e event, known bool) {
	return e, boundedjson.Unmarshal(text, maxValues, &e) == nil && e.Type != ""
}

// These are the types of the binary message with a preview and of the picture in it.
const previewMessage, jpegPicture = 1, 1

// parsePreview reads two four-byte types, followed by the picture. It returns false if the message cannot be used.
func parsePreview(content []byte) (event, bool) {
	const head = 8
	if len(content) <= head || binary.BigEndian.Uint32(content) != previewMessage ||
		binary.BigEndian.Uint32(content[4:]) != jpegPicture {
		return event{}, false
	}
	return event{preview: content[head:]}, true
}
