package main

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/app/engineconfig"
	"cutroom/shared/domain/catalog"
)

// announcement contains everything that another program needs to use the server it started. It
// contains the path of the key file instead of the key, because output ends up in logs.
type announcement struct {
	URL          string `json:"url"`
	InferenceURL string `json:"inference_url"`
	// KeyFile is "" if the key comes from a setting.
	KeyFile string `json:"key_file,omitempty"`
	// MetricsKeyFile is the path of the file with the key for /metrics, or "" if the key comes from a setting.
	MetricsKeyFile string `json:"metrics_key_file,omitempty"`
	Data           string `json:"data"`
}

// announce prints the server's addresses, as text or as one line of JSON.
func (c *devCommand) announce(out *command.Invocation, server *server) error {
	if !out.JSON {
		return c.welcome(out, server)
	}
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return err
	}
	told := announcement{URL: server.url(), InferenceURL: server.gateway.url(), Data: data}
	if c.DevKey == "" {
		told.KeyFile = command.DevKeyFile(data)
	}
	if c.MetricsKey == "" {
		told.MetricsKeyFile = metricsKeyFile(data)
	}
	return out.Print(told)
}

type keyWords struct {
	// place is the key, or where to find it. It is shown in the table.
	place string
	// shell is shell code for the key, for use inside double quotes.
	shell string
}

// wordsForKey returns the key itself only for a terminal, because other output ends up in logs.
func (c *devCommand) wordsForKey(key string, isPerson bool) (keyWords, error) {
	switch {
	case isPerson:
		return keyWords{key, key}, nil
	case c.DevKey != "":
		return keyWords{"from CUTROOM_DEV_KEY", "$CUTROOM_DEV_KEY"}, nil
	}
	path, err := filepath.Abs(command.DevKeyFile(c.Data))
	if err != nil {
		return keyWords{}, err
	}
	return keyWords{"in " + path, "$(cat '" + strings.ReplaceAll(path, "'", `'\''`) + "')"}, nil
}

func (c *devCommand) welcome(out *command.Invocation, server *server) error {
	key, err := c.wordsForKey(server.devKey, out.ShowsOut())
	if err != nil {
		return err
	}
	fmt.Fprintf(out.Out, `
Cutroom is ready. %[5]s

  Console     %[1]s/console
  Media API   %[1]s
  Inference   %[4]s
  Realtime    %[1]s/realtime
  Docs        %[1]s/docs
  Key         %[2]s
  Data        %[3]s
  Metrics     %[4]s/metrics, with the key %[6]s
  Network     %[7]s
`, server.url(), key.place, c.Data, server.gateway.url(), c.engineWords(),
		c.metricsWords(), networkWords(server.listener.Addr(), server.gateway.listener.Addr()))
	known := server.gateway.catalog.Catalog()
	welcomeToEdit(out.Out, server, known, key)
	welcomeToChat(out.Out, server, key)
	fmt.Fprint(out.Out, "\nPress Ctrl-C to stop.\n\n")
	return nil
}

func welcomeToEdit(out io.Writer, server *server, known *catalog.Catalog, key keyWords) {
	m, ok := clipModel(known)
	if !ok {
		return
	}
	fmt.Fprintf(out, `
Edit a sample clip, check the job's progress, and download the result when the job is completed:

  curl -sSf %[1]s/console/sample.mp4 -o sample.mp4
  curl -s %[1]s/v1/jobs/%[2]s -H "x-api-key: %[3]s" -F data=@sample.mp4 -F prompt='a watercolor painting'
  curl -s %[1]s/v1/jobs/JOB_ID -H "x-api-key: %[3]s"
  curl -sSf %[1]s/v1/jobs/JOB_ID/content -H "x-api-key: %[3]s" -o edited.mp4
`, server.url(), m.ID, key.shell)
}

// clipModel returns the model for the sample edit in the welcome message: a model that needs only a
// video and a prompt, preferably an editing model.
func clipModel(known *catalog.Catalog) (*catalog.Model, bool) {
	var found *catalog.Model
	for _, m := range known.Models() {
		if m.DataType() != catalog.VideoFile || !m.Form.Suffices("data", "prompt") {
			continue
		}
		if m.Kind == catalog.Edit {
			return m, true
		}
		if found == nil {
			found = m
		}
	}
	return found, found != nil
}

func welcomeToChat(out io.Writer, server *server, key keyWords) {
	slug, ok := server.gateway.chatModel()
	if !ok {
		return
	}
	fmt.Fprintf(out, `
Chat, through the inference gateway:

  curl -s %s/v1/chat/completions -H "Authorization: Bearer %s" -d '{"model": "%s", "messages": [{"role": "user", "content": "Hello!"}]}'
`, server.gateway.url(), key.shell, slug)
}

func (c *devCommand) metricsWords() string {
	if c.MetricsKey != "" {
		return "from CUTROOM_METRICS_KEY"
	}
	return "in " + metricsKeyFile(c.Data)
}

func networkWords(media, inference net.Addr) string {
	for _, address := range []net.Addr{media, inference} {
		if !isLoopback(address) {
			return "other machines can reach it at " + address.String() +
				" over plain HTTP: put a proxy with TLS in front"
		}
	}
	port := func(of net.Addr) string {
		_, port, _ := net.SplitHostPort(of.String()) // a listener's address has a port
		return ":" + port
	}
	return "only this machine can reach it; CUTROOM_ADDR=" + port(media) + " CUTROOM_INFERENCE_ADDR=" + port(inference) +
		" opens it"
}

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func (c *devCommand) engineWords() string {
	choice := engineconfig.Parse(c.Engine)
	if choice.BuiltIn() {
		return "Its " + choice.Name + " engine edits on this machine's CPU."
	}
	return "The engine is the server at " + strings.Join(choice.Servers, ",") + "."
}

// reachable returns the address at which clients on this machine can reach a listener.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(strings.ToLower(host), port)
}
