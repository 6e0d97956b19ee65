package main_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/testkit/await"
)

// tab is a browser page that a test controls with the DevTools protocol
// (https://chromedevtools.github.io/devtools-protocol). It uses only a few of the protocol's
// commands, so it needs no library.
type tab struct {
	t    *testing.T
	ctx  context.Context // ends when the browser does
	conn *websocket.Conn
	// session is the page's session id. sent is the id of the last command.
	session string
	sent    int
}

func openTab(t *testing.T, args ...string) *tab {
	t.Helper()
	// The browser outlives the test's context, so that a screenshot can be taken after a failure.
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	command := browser(ctx, t, "about:blank", append([]string{"--remote-debugging-port=0"}, args...)...)
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // the error only says that the browser was killed
	})
	page := &tab{t: t, ctx: ctx}
	if err := page.attach(bounded(t), profileOf(command.Args)); err != nil {
		stop()
		_ = command.Wait()
		t.Fatalf("the browser cannot be driven: %v\n%s", err, &log)
	}
	t.Cleanup(func() {
		if t.Failed() {
			page.screenshot("failure.png")
		}
		page.conn.CloseNow()
	})
	return page
}

func profileOf(args []string) string {
	for _, arg := range args {
		if profile, found := strings.CutPrefix(arg, "--user-data-dir="); found {
			return profile
		}
	}
	return ""
}

func (p *tab) attach(ctx context.Context, profile string) error {
	address, err := debugger(ctx, filepath.Join(profile, "DevToolsActivePort"))
	if err != nil {
		return err
	}
	if p.conn, _, err = websocket.Dial(ctx, address, nil); err != nil {
		return err
	}
	p.conn.SetReadLimit(64 << 20)
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	if err := p.command("Target.getTargets", nil, &targets); err != nil {
		return err
	}
	for _, target := range targets.TargetInfos {
		if target.Type == "page" {
			var attached struct{ SessionID string }
			err := p.command("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
			p.session = attached.SessionID
			return err
		}
	}
	return fmt.Errorf("no page among %+v", targets)
}

// debugger waits for the file that contains the browser's DevTools address.
func debugger(ctx context.Context, path string) (string, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if text, err := os.ReadFile(path); err == nil {
			if port, rest, whole := strings.Cut(string(text), "\n"); whole && rest != "" {
				return "ws://127.0.0.1:" + port + strings.TrimSpace(rest), nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func (p *tab) command(method string, params any, result any) error {
	p.sent++
	message, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{p.sent, p.session, method, params})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.ctx, await.Max)
	defer cancel()
	if err := p.conn.Write(ctx, websocket.MessageText, message); err != nil {
		return err
	}
	for {
		_, text, err := p.conn.Read(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return err
		}
		switch {
		case answer.ID != p.sent: // an event or a late response
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case result == nil:
			return nil
		default:
			return json.Unmarshal(answer.Result, result)
		}
	}
}

func (p *tab) must(method string, params any, result any) {
	p.t.Helper()
	if err := p.command(method, params, result); err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) open(address string) {
	p.t.Helper()
	p.must("Page.navigate", map[string]any{"url": address}, nil)
	p.await("the page is loaded", fmt.Sprintf(`location.href === %q && document.readyState === "complete"`, address))
}

// eval runs a script on the page and returns its value. If that is a promise, it is awaited.
func eval[T any](p *tab, script string) (value T) {
	p.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.must("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true,
		"userGesture": true}, &answer)
	if failure := answer.ExceptionDetails; failure != nil {
		p.t.Fatalf("on the page: %s %s\nin %s", failure.Text, failure.Exception.Description, script)
	}
	if len(answer.Result.Value) > 0 {
		if err := json.Unmarshal(answer.Result.Value, &value); err != nil {
			p.t.Fatalf("%v in %s, from %s", err, answer.Result.Value, script)
		}
	}
	return value
}

func (p *tab) do(script string) {
	p.t.Helper()
	eval[any](p, script+"; undefined")
}

// await waits until an expression is true on the page. If it fails, it prints the description of the condition in
// what.
func (p *tab) await(what, expression string) {
	p.t.Helper()
	eventually(p.t, what, func() bool { return eval[bool](p, "!!("+expression+")") }, func() any {
		return fmt.Sprintf("%s is false on a page of %s", expression,
			eval[string](p, `JSON.stringify(document.body.dataset) + "\n" + document.body.innerText.slice(0, 2000)`))
	})
}

func (p *tab) press(key string, code int) {
	p.t.Helper()
	text := ""
	if key == "Enter" {
		text = "\r"
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		p.must("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
			"text": text}, nil)
	}
}

// resize sets the page's size in CSS pixels and its color scheme, which is "light" or "dark".
func (p *tab) resize(width, height int, scheme string) {
	p.t.Helper()
	p.must("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1,
		"mobile": width < 500}, nil)
	p.must("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme",
		"value": scheme}}}, nil)
}

func (p *tab) screenshot(name string) {
	p.t.Helper()
	var shot struct{ Data string }
	p.must("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	picture, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(p.t.ArtifactDir(), name), picture, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
