package api_test

import (
	"fmt"
	"strings"
	"testing"

	"cutroom/shared/testkit/alloctest"
)

// Even if a body consists of many small elements, it needs little more memory than its size.
func TestBodiesNeedLittleMemory(t *testing.T) {
	w := newWorld(t, setup{})
	const most = 1 << 20
	const form, encoded = "Content-Type: multipart/form-data; boundary=x", "Content-Type: application/x-www-form-urlencoded"
	key := "x-api-key: " + studio
	admin := "x-api-key: " + w.newAdmin("studio")
	bodies := map[string]string{
		"list of numbers":  alloctest.Filled(most, `{"models":[`, "0,", `0]}`),
		"list of texts":    alloctest.Filled(most, `{"models":[`, `"",`, `""]}`),
		"list of objects":  alloctest.Filled(most, `{"models":[`, `{},`, `{}]}`),
		"same member":      alloctest.Filled(most, `{"a":0`, `,"":0`, `}`),
		"other members":    alloctest.Numbered(most, `{"a":0`, `,"%x":0`, `}`),
		"inner members":    alloctest.Numbered(most, `{"scope":{"a":0`, `,"%x":0`, `},"limits":{}}`),
		"lists of a scope": alloctest.Filled(most, `{"scope":{"models":[`, `"",`, `""]}}`),
		"lists of limits":  alloctest.Filled(most, `{"name":"x","limits":{"models":[`, `0,`, `0]}}`),
		"deep":             strings.Repeat("[", most),
		"deep objects":     alloctest.Filled(most, "", `{"a":`, ""),
		"array":            alloctest.Filled(most, "[", "0,", "0]"),
		"escapes":          alloctest.Filled(most, `{"prompt":"`, `\u0000`, `"}`),
	}
	lines := []string{
		"POST /v1/models/resolve", "POST /v1/understand", "POST /v1/client/tokens", "POST /v1/keys", "PUT /v1/budgets",
		"POST /v1/files", "POST /v1/webhooks", "POST /v1/tokens", "POST /v1/realtime/tokens",
	}
	for name, body := range bodies {
		for _, line := range lines {
			t.Run(line+" "+name, func(t *testing.T) {
				request := alloctest.Request(line, body, "Content-Type: application/json", admin)
				alloctest.Check(t, len(request), func() { alloctest.Send(w.t, w.address, request) })
			})
		}
	}
	const part = "--x\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n\r\n"
	forms := map[string]string{
		"parts":            strings.Repeat(fmt.Sprintf(part, "a"), most/60) + "--x--\r\n",
		"bare parts":       strings.Repeat("--x\r\n\r\n\r\n", most/9) + "--x--\r\n",
		"headers":          "--x\r\n" + strings.Repeat("a:\r\n", most/4) + "\r\n\r\n--x--\r\n",
		"parameters":       "--x\r\nContent-Disposition: form-data" + strings.Repeat(";a=b", most/4) + "\r\n\r\n\r\n--x--\r\n",
		"other parameters": "--x\r\nContent-Disposition: form-data" + alloctest.Numbered(15<<10, "", ";%x=b", "") + "\r\n\r\n\r\n--x--\r\n",
		"lines":            "--x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n" + strings.Repeat("\r\n-", most/3) + "\r\n--x--\r\n",
		"prompts":          strings.Repeat(fmt.Sprintf(part, "prompt"), most/60) + "--x--\r\n",
		"files":            strings.Repeat("--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a\"\r\n\r\n\r\n", most/70) + "--x--\r\n",
	}
	for name, body := range forms {
		for _, line := range []string{"POST /v1/jobs/gen-2.5", "POST /v1/files", "POST /v1/generate/gen-image-2"} {
			t.Run(line+" "+name, func(t *testing.T) {
				request := alloctest.Request(line, body, form, key)
				alloctest.Check(t, len(request), func() { alloctest.Send(w.t, w.address, request) })
			})
		}
	}
	for name, body := range map[string]string{
		"pairs": strings.Repeat("&", most), "names": alloctest.Numbered(most, "", "&%x", ""), "prompts": alloctest.Filled(most, "", "&prompt=", ""),
		"escapes": alloctest.Filled(most, "prompt=", "%20", ""),
	} {
		t.Run("urlencoded "+name, func(t *testing.T) {
			request := alloctest.Request("POST /v1/jobs/gen-pro-t2v", body, encoded, key)
			alloctest.Check(t, len(request), func() { alloctest.Send(w.t, w.address, request) })
		})
	}
}
