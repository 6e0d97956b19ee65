package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/testkit/servertest"
)

// session sends some frames to edit, changes the prompt between them, and ends cleanly or abruptly.
func (l *load) session(ctx context.Context, random *rand.Rand) {
	address := "ws" + strings.TrimPrefix(l.server.URL(), "http") + "/v1/stream?model=gen-latest&api_key=" + servertest.Key
	conn, _, err := websocket.Dial(ctx, address, nil)
	if err != nil {
		l.ledger.wrong("a session: %v", err)
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(8 << 20)
	frames := 0
	for want := 5 + random.IntN(40); frames < want; frames++ {
		if random.IntN(5) == 0 {
			text, _ := json.Marshal(map[string]string{"type": "prompt", "prompt": prompts[random.IntN(len(prompts))]})
			err = conn.Write(ctx, websocket.MessageText, text)
		}
		if err == nil {
			err = conn.Write(ctx, websocket.MessageBinary, l.inputs.picture)
		}
		for kind := websocket.MessageText; err == nil && kind != websocket.MessageBinary; {
			kind, _, err = conn.Read(ctx)
		}
		if err != nil {
			l.ledger.wrong("a session after %d frames: %v", frames, err)
			return
		}
	}
	if random.IntN(2) == 0 {
		conn.Close(websocket.StatusNormalClosure, "")
	}
	l.ledger.did("sessions")
}

// harm sends a hostile request and checks that the server rejects or drops it.
func (l *load) harm(ctx context.Context, random *rand.Rand) {
	harms := []func(context.Context, *rand.Rand) error{l.smuggle, l.breakOff, l.guess, l.garble, l.submitNonsense,
		l.openNonsense}
	if err := harms[random.IntN(len(harms))](ctx, random); err != nil && ctx.Err() == nil {
		l.ledger.wrong("%v", err)
	}
	l.ledger.did("hostile requests")
}

// smuggle hides a request in another one.
func (l *load) smuggle(ctx context.Context, random *rand.Rand) error {
	attacks := servertest.FramingAttacks("/v1/files")
	attack := attacks[random.IntN(len(attacks))]
	if err := attack.Try(ctx, strings.TrimPrefix(l.server.URL(), "http://"), random.IntN(40)); err != nil {
		return fmt.Errorf("%s: %w", attack.Name, err)
	}
	return nil
}

func (l *load) breakOff(ctx context.Context, random *rand.Rand) error {
	address, path := l.server.URL(), "/v1/files"
	if random.IntN(2) == 0 {
		address, path = l.server.InferenceURL(), "/v1/chat/completions"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nx-api-key: %[2]s\r\nAuthorization: Bearer %[2]s\r\n"+
		"Content-Type: multipart/form-data; boundary=x\r\n"+
		"Content-Length: 1000000\r\n\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n%s",
		path, servertest.Key, strings.Repeat("y", random.IntN(100_000)))
	_, _ = io.WriteString(conn, request[:random.IntN(len(request))]) // the server may have rejected it
	return nil
}

func (l *load) guess(ctx context.Context, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	client := &servertest.Client{URL: l.server.URL(), Key: fmt.Sprintf("ck_guess%016x", random.Uint64())}
	answer, err := client.Get(ctx, "/v1/jobs")
	if err != nil || answer.Status != 401 && answer.Status != 429 {
		return fmt.Errorf("a guess: status %d, %w", answer.Status, err)
	}
	return nil
}

func (l *load) garble(ctx context.Context, random *rand.Rand) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(l.server.URL(), "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	noise := make([]byte, 1+random.IntN(5000))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	_, _ = conn.Write(append(noise, "\r\n\r\n"...)) // the server may have rejected it
	_, _ = bufio.NewReader(conn).ReadString('\n')
	return nil
}

func (l *load) submitNonsense(ctx context.Context, random *rand.Rand) error {
	content := l.inputs.picture[:random.IntN(len(l.inputs.picture))]
	job, err := l.server.Client().Submit(ctx, "gen-image-2", servertest.Form{
		servertest.File("data", "a.jpg", content), servertest.Text("prompt", strings.Repeat("x", random.IntN(6000)))})
	if err == nil {
		l.ledger.accepted(job.ID, true)
		return nil
	}
	if failure, ok := err.(*servertest.StatusError); !ok || failure.Status/100 != 4 {
		return fmt.Errorf("submit an invalid job: %w", err)
	}
	return nil
}

// openNonsense opens a session and sends data that is neither a frame nor a message.
func (l *load) openNonsense(ctx context.Context, random *rand.Rand) error {
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(l.server.URL(), "http")+
		"/v1/stream?model=gen-latest&api_key="+servertest.Key, nil)
	if err != nil {
		return fmt.Errorf("open a session: %w", err)
	}
	defer conn.CloseNow()
	for range random.IntN(20) {
		noise := make([]byte, random.IntN(2000))
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		kind := websocket.MessageBinary
		if random.IntN(2) == 0 {
			kind = websocket.MessageText
			noise = fmt.Appendf(nil, `{"type": "set_image", "image_data": "%x"}`, noise)
		}
		if conn.Write(ctx, kind, noise) != nil {
			break // the invalid data ended the session
		}
	}
	return nil
}
