package api_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/service/api"
	"cutroom/shared/testkit/busytest"
)

// raw sends an entire request on a separate connection before it reads the response.
func (w *world) raw(send func(conn *net.TCPConn)) (answer, error) {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	send(conn.(*net.TCPConn))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

func head(model string, fields ...string) string {
	return "POST /v1/jobs/" + model + " HTTP/1.1\r\nHost: x\r\nx-api-key: " + studio +
		"\r\nContent-Type: multipart/form-data; boundary=x\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
}

const (
	dataHeader   = "--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a\"\r\n\r\n"
	storedHeader = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nbytes"
	chunked      = "Transfer-Encoding: chunked"
	brokenBody   = "Value error, The body is incomplete or malformed."
	invalidForm  = "Value error, The body is not valid multipart/form-data."
	longHeader   = "Value error, The header of a part is longer than 16 KiB."
	stoppedBody  = "The request body stopped arriving."
	tooLargeBody = "The request body is larger than 2097152 bytes. " + api.LargeUploads
)

func length(n int) string { return fmt.Sprintf("Content-Length: %d", n) }

func httpChunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

type hostileForm struct {
	name   string
	send   func(conn *net.TCPConn)
	status int
	detail string
}

// rejects checks that each form gets the expected response and leaves behind no blob and no goroutine.
func rejects(t *testing.T, w *world, forms []hostileForm) {
	t.Helper()
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			if form.status == http.StatusRequestTimeout {
				busytest.Try(t, time.Second, func(stall time.Duration) error { return hostileWorld(t, stall).refuse(form) })
			} else if err := w.refuse(form); err != nil {
				t.Error(err)
			}
		})
	}
}

func (w *world) refuse(form hostileForm) error {
	w.t.Helper()
	a, err := w.raw(form.send)
	if err != nil {
		return fmt.Errorf("the response was lost: %w", err)
	}
	w.nothingStays()
	detail := a.detail()
	if a.status == 422 {
		if problems := w.problems(a); len(problems) == 1 {
			detail = problems[0].Msg
		}
	}
	if a.status != form.status || detail != form.detail {
		return fmt.Errorf("%d %.300s", a.status, a.body)
	}
	return nil
}

// hostileWorld returns a service that gives up on a body after the given stall time (0 means a minute). When the test
// ends, it checks that the goroutines of all requests have returned.
func hostileWorld(t *testing.T, stall time.Duration) *world {
	w := newWorld(t, setup{maxUpload: 1 << 20, stall: stall})
	t.Cleanup(func() {
		eventually(t, "the goroutines of all requests have returned", func() bool { return !serving() })
	})
	return w
}

func serving() bool {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return slices.ContainsFunc([]string{
		"net/http.(*conn", "cutroom/shared/service/api.", "cutroom/shared/adapter/diskblob.", "cutroom/shared/engine/ffmpeg.",
	}, func(name string) bool { return bytes.Contains(stacks, []byte(name)) })
}

func TestHostileFormIsRejected(t *testing.T) {
	w := hostileWorld(t, 0)
	video := clip(t)
	whole := dataHeader + video + "\r\n--x--\r\n"
	half := whole[:len(whole)/2]
	rejects(t, w, []hostileForm{
		{"declares more than it sends, and ends", func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-2.5", length(len(whole)))+half)
			conn.CloseWrite()
		}, 422, brokenBody},
		{"declares more than a complete form, and ends", func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-2.5", length(len(whole)+1))+whole)
			conn.CloseWrite()
		}, 422, brokenBody},
		{"declares more than it sends, and waits", func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-2.5", length(len(whole)))+half)
		}, 408, stoppedBody},
		{"declares less than it sends", func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-2.5", length(len(half)))+whole)
		}, 422, invalidForm},
		{"ends in the middle of a chunk", func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-2.5", chunked)+"fffff\r\n"+half)
			conn.CloseWrite()
		}, 422, brokenBody},
		{"ends without the last chunk", func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-2.5", chunked)+httpChunk(whole))
			conn.CloseWrite()
		}, 422, brokenBody},
		{"a chunk of a malformed size", func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-2.5", chunked)+httpChunk(half)+"zz\r\n")
		}, 422, brokenBody},
		{"a chunked body beyond the limit", func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-2.5", chunked)+httpChunk(dataHeader+video))
			for range 3 {
				io.WriteString(conn, httpChunk(strings.Repeat("v", 1<<20)))
			}
			io.WriteString(conn, "0\r\n\r\n")
		}, 413, tooLargeBody},
		{"declares more than the limit", func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-2.5", length(2<<20+1))+strings.Repeat("v", 2<<20+1))
		}, 413, tooLargeBody},
		{"ends within a stored file", func(conn *net.TCPConn) {
			io.WriteString(conn, strings.Replace(head("gen-2.5", length(len(whole))), "jobs/gen-2.5", "files", 1)+storedHeader)
			conn.CloseWrite()
		}, 422, brokenBody},
		{"a header without a colon", func(conn *net.TCPConn) {
			body := "--x\r\nContent-Disposition\r\n\r\nx\r\n--x--\r\n"
			io.WriteString(conn, head("gen-2.5", length(len(body)))+body)
		}, 422, invalidForm},
	})
}

func TestEndlessFormIsRejected(t *testing.T) {
	w := hostileWorld(t, 0)
	video := clip(t)
	endless := func(prefix, piece string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-2.5", length(1<<20))+prefix)
			for sent := len(prefix); sent < 1<<20; sent += len(piece) {
				if _, err := io.WriteString(conn, piece); err != nil {
					t.Errorf("cut off while sending: %v", err)
					return
				}
			}
		}
	}
	rejects(t, w, []hostileForm{
		{"an endless header line", endless("--x\r\nContent-Disposition: ", strings.Repeat("a", 8192)), 422,
			longHeader},
		{"endless header lines", endless("--x\r\n", strings.Repeat("A: b\r\n", 1024)), 422,
			longHeader},
		{"endless header lines after a file", endless(dataHeader+video+"\r\n--x\r\n", strings.Repeat("A: b\r\n", 1024)), 422,
			longHeader},
		{"only a preamble", endless("", strings.Repeat("preamble\r\n", 1000)), 422,
			longHeader},
		{"too many parts", endless(dataHeader+video,
			"\r\n--x\r\nContent-Disposition: form-data; name=\"p\"\r\n\r\nv"), 422,
			"Value error, The form has more than 100 parts."},
		{"an endless value", endless("--x\r\nContent-Disposition: form-data; name=\"seed\"\r\n\r\n",
			strings.Repeat("9", 8192)), 422, invalidForm},
	})
}

func TestAbortedUploadLeavesNoFiles(t *testing.T) {
	w := hostileWorld(t, 0)
	whole := dataHeader + clip(t) + "\r\n--x--\r\n"
	half := whole[:len(whole)/2]
	for name, send := range map[string]string{
		"hangs up in a file":        head("gen-2.5", length(len(whole))) + half,
		"hangs up in a chunk":       head("gen-2.5", chunked) + "fffff\r\n" + half,
		"hangs up in a stored file": strings.Replace(head("gen-2.5", length(len(whole))), "jobs/gen-2.5", "files", 1) + storedHeader,
		"hangs up in a header":      head("gen-2.5", length(len(whole))) + dataHeader[:20],
		"hangs up before a job":     head("gen-2.5", length(len(whole)+1)) + whole,
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", w.address)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, send)
			conn.(*net.TCPConn).SetLinger(0) // send a reset, like a client that was killed
			conn.Close()
			eventually(t, "nothing stays", func() bool { return len(w.files()) == 0 })
		})
	}
}

func TestTruncatedFormIsRejected(t *testing.T) {
	w := newWorld(t, setup{})
	body := "--x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nhello\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n" +
		picture(t) + "\r\n--x--\r\n"
	send := func(end int) answer {
		a, err := w.raw(func(conn *net.TCPConn) {
			io.WriteString(conn, head("gen-image-2", fmt.Sprintf("Content-Length: %d", end), "Connection: close")+body[:end])
		})
		if err != nil {
			t.Fatalf("at byte %d: %v", end, err)
		}
		return a
	}
	complete := strings.LastIndex(body, "--\r\n") + len("--") // the final line break is optional
	for end := range len(body) {
		if end == complete {
			continue
		}
		if a := send(end); a.status != 422 || len(w.files()) > 0 {
			t.Errorf("at byte %d, after %q: %d %s, and there are %v", end, body[max(0, end-20):end], a.status, a.body, w.files())
		}
	}
	w.accepted(send(complete))
	w.accepted(send(len(body)))
}

func TestUnusualFormIsAccepted(t *testing.T) {
	w := newWorld(t, setup{})
	image := picture(t)
	const data = "Content-Disposition: form-data; name=\"data\"; filename=\"a\"\r\n\r\n"
	prompt := "\r\n--x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nhello"
	for says, body := range map[string]string{
		"a preamble and an epilogue": "Hello!\r\n--x\r\n" + data + image + prompt + "\r\n--x--\r\nGoodbye!\r\n" +
			strings.Repeat("!", 100_000),
		"only line feeds": "--x\nContent-Disposition: form-data; name=\"data\"\n\n" +
			image + strings.ReplaceAll(prompt, "\r", "") + "\n--x--\n",
		"spaces after a boundary":         "--x  \r\n" + data + image + prompt + "\r\n--x--  \r\n",
		"nothing after the last boundary": "--x\r\n" + data + image + prompt + "\r\n--x--",
		"header fields in lower case": "--x\r\ncontent-disposition: form-data; name=data\r\n\r\n" + image + prompt +
			"\r\n--x--\r\n",
		"a wrong transfer encoding": "--x\r\nContent-Transfer-Encoding: quoted-printable\r\n" + data + image + prompt +
			"\r\n--x--\r\n",
		"ninety unknown fields": "--x\r\n" + data + image + prompt +
			strings.Repeat("\r\n--x\r\nContent-Disposition: form-data; name=\"u\"\r\n\r\n1", 90) + "\r\n--x--\r\n",
	} {
		a := w.request("POST", "/v1/jobs/gen-image-2", studio, strings.NewReader(body),
			"Content-Type: multipart/form-data; boundary=x")
		if a.status != 200 {
			t.Errorf("%s: %d %s", says, a.status, a.body)
			continue
		}
		j := w.record(w.accepted(a))
		if j.Request.Prompt != "hello" || j.Request.Inputs["data"].Size != int64(len(image)) {
			t.Errorf("%s: the job has %+v", says, j.Request)
		}
	}
}

func TestLongValueIsTruncated(t *testing.T) {
	w := newWorld(t, setup{})
	for says, a := range map[string]answer{
		"in parts": w.post("gen-pro-t2v", studio, text("prompt", "x"+strings.Repeat("é", 500_000))),
		"urlencoded": w.request("POST", "/v1/jobs/gen-pro-t2v", studio,
			strings.NewReader("prompt=x"+strings.Repeat("é", 100_000)),
			"Content-Type: application/x-www-form-urlencoded"),
	} {
		problems := w.problems(a)
		if len(problems) != 1 || problems[0].Type != "string_too_long" || problems[0].Input != "x"+strings.Repeat("é", 99)+"…" {
			t.Errorf("%s: %.200s", says, a.body)
		}
	}
	a := w.request("POST", "/v1/jobs/gen-pro-t2v", studio, strings.NewReader("prompt="+strings.Repeat("x", 1<<20)),
		"Content-Type: application/x-www-form-urlencoded")
	if problems := w.problems(a); len(problems) != 1 || problems[0].Msg != "Value error, The form is longer than 256 KiB." {
		t.Errorf("got %.200s", a.body)
	}
}

// See docs/contract/media.md#input-limits.
func TestMediaBeyondLimitsIsRejected(t *testing.T) {
	w := newWorld(t, setup{})
	image := picture(t)
	wide := content(t, mediatest.Video{Width: 4112, Height: 16, Seconds: 0.2, Silent: true}.Make(t))
	long := content(t, mediatest.ClaimDuration(t, mediatest.Video{}.Make(t), 301, true))
	edge := content(t, mediatest.ClaimDuration(t, mediatest.Video{}.Make(t), 300, true))
	for _, c := range []struct {
		says, model, field, bytes, want string
	}{
		{"wider than 4096", "gen-2.5", "data", wide, "Value error, The video is larger than 4096x4096 pixels."},
		{"longer than 5 minutes", "gen-2.5", "data", long, "Value error, The video is longer than 5 minutes."},
		{"an image of 60 megapixels", "gen-image-2", "data", content(t, mediatest.PNGHeader(t, 10_000, 6_000)),
			"Value error, The image is larger than 50 megapixels."},
		{"as a reference", "gen-image-2", "reference_image", content(t, mediatest.PNGHeader(t, 10_000, 6_000)),
			"Value error, The image is larger than 50 megapixels."},
	} {
		parts := []part{text("prompt", "x"), upload(c.field, c.bytes)}
		if c.field != "data" {
			parts = append(parts, upload("data", image))
		}
		problems := w.problems(w.post(c.model, studio, parts...))
		if len(problems) != 1 || problems[0].Msg != c.want || problems[0].Loc[1] != c.field {
			t.Errorf("%s: %v", c.says, problems)
		}
		w.nothingStays()
	}
	w.accepted(w.post("gen-2.5", studio, upload("data", edge)))
	w.accepted(w.post("gen-image-2", studio, text("prompt", "x"),
		upload("data", content(t, mediatest.PNGHeader(t, 10_000, 5_000)))))
}
