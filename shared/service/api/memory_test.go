package api_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/testkit/alloctest"
	"cutroom/shared/testkit/patience"
)

// sendBytes sends the bytes of a request on a new connection and returns the status of
// the response, or 0 without a response.
func (w *world) sendBytes(request []byte) int {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience.Max)); err != nil {
		w.t.Fatal(err)
	}
	_, _ = conn.Write(request) // the server may answer before the end
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// requestBytes returns a request with a body, unless the body is empty.
func requestBytes(line, body string, fields ...string) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", line)
	for _, field := range fields {
		text.WriteString(field + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&text, "Content-Length: %d\r\n", len(body))
	}
	text.WriteString("\r\n" + body)
	return text.Bytes()
}

// filled returns head, as many pieces as fit into the bytes, and tail.
func filled(bytes int, head, piece, tail string) string {
	return head + strings.Repeat(piece, (bytes-len(head)-len(tail))/len(piece)) + tail
}

// numbered is filled with pieces that differ.
func numbered(bytes int, head, piece, tail string) string {
	var text strings.Builder
	text.WriteString(head)
	for n := 0; text.Len() < bytes-len(tail)-20; n++ {
		fmt.Fprintf(&text, piece, n)
	}
	return text.String() + tail
}

// A body of the cheapest elements takes little more memory than its bytes, up to the
// largest that is read.
func TestMemoryOfBodies(t *testing.T) {
	w := newWorld(t, setup{})
	const most = 1 << 20
	const form, encoded = "Content-Type: multipart/form-data; boundary=x", "Content-Type: application/x-www-form-urlencoded"
	key := "x-api-key: " + studio
	admin := "x-api-key: " + w.newAdmin("studio")
	bodies := map[string]string{
		"list of numbers":  filled(most, `{"models":[`, "0,", `0]}`),
		"list of texts":    filled(most, `{"models":[`, `"",`, `""]}`),
		"list of objects":  filled(most, `{"models":[`, `{},`, `{}]}`),
		"same member":      filled(most, `{"a":0`, `,"":0`, `}`),
		"other members":    numbered(most, `{"a":0`, `,"%x":0`, `}`),
		"inner members":    numbered(most, `{"scope":{"a":0`, `,"%x":0`, `},"limits":{}}`),
		"lists of a scope": filled(most, `{"scope":{"models":[`, `"",`, `""]}}`),
		"lists of limits":  filled(most, `{"name":"x","limits":{"models":[`, `0,`, `0]}}`),
		"deep":             strings.Repeat("[", most),
		"deep objects":     filled(most, "", `{"a":`, ""),
		"array":            filled(most, "[", "0,", "0]"),
		"escapes":          filled(most, `{"prompt":"`, `\u0000`, `"}`),
	}
	lines := []string{
		"POST /v1/models/resolve", "POST /v1/understand", "POST /v1/client-tokens", "POST /v1/keys", "PUT /v1/budgets",
		"POST /v1/files", "POST /v1/webhooks", "POST /v1/tokens", "POST /v1/realtime/tokens",
	}
	for name, body := range bodies {
		for _, line := range lines {
			t.Run(line+" "+name, func(t *testing.T) {
				request := requestBytes(line, body, "Content-Type: application/json", admin)
				alloctest.Check(t, len(request), func() { w.sendBytes(request) })
			})
		}
	}
	const part = "--x\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n\r\n"
	forms := map[string]string{
		"parts":            strings.Repeat(fmt.Sprintf(part, "a"), most/60) + "--x--\r\n",
		"bare parts":       strings.Repeat("--x\r\n\r\n\r\n", most/9) + "--x--\r\n",
		"headers":          "--x\r\n" + strings.Repeat("a:\r\n", most/4) + "\r\n\r\n--x--\r\n",
		"parameters":       "--x\r\nContent-Disposition: form-data" + strings.Repeat(";a=b", most/4) + "\r\n\r\n\r\n--x--\r\n",
		"other parameters": "--x\r\nContent-Disposition: form-data" + numbered(15<<10, "", ";%x=b", "") + "\r\n\r\n\r\n--x--\r\n",
		"lines":            "--x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n" + strings.Repeat("\r\n-", most/3) + "\r\n--x--\r\n",
		"prompts":          strings.Repeat(fmt.Sprintf(part, "prompt"), most/60) + "--x--\r\n",
		"files":            strings.Repeat("--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a\"\r\n\r\n\r\n", most/70) + "--x--\r\n",
	}
	for name, body := range forms {
		for _, line := range []string{"POST /v1/jobs/gen-2.5", "POST /v1/files", "POST /v1/generate/gen-image-2"} {
			t.Run(line+" "+name, func(t *testing.T) {
				request := requestBytes(line, body, form, key)
				alloctest.Check(t, len(request), func() { w.sendBytes(request) })
			})
		}
	}
	for name, body := range map[string]string{
		"pairs": strings.Repeat("&", most), "names": numbered(most, "", "&%x", ""), "prompts": filled(most, "", "&prompt=", ""),
		"escapes": filled(most, "prompt=", "%20", ""),
	} {
		t.Run("urlencoded "+name, func(t *testing.T) {
			request := requestBytes("POST /v1/jobs/gen-pro-t2v", body, encoded, key)
			alloctest.Check(t, len(request), func() { w.sendBytes(request) })
		})
	}
}
