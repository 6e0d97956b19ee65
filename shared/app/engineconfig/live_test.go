package engineconfig_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cutroom/shared/app/engineconfig"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/engine/engineserver/livewire"
	"cutroom/shared/engine/preview/frame"
)

func TestServersEditTheirLiveModels(t *testing.T) {
	served := &catalog.Model{ID: "gen-2.5", Kind: catalog.Edit}
	mux := http.NewServeMux()
	mux.Handle(livewire.Path, &engineservertest.Live{
		Engine: frame.New(time.Now, func() uint32 { return 1 }), Models: []*catalog.Model{served},
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	old := httptest.NewServer(http.NotFoundHandler())
	defer old.Close()
	for _, c := range []struct {
		live, setting, model string
		offloaded            bool
	}{
		{"", "", served.ID, false},
		{"", "openai:" + old.URL, served.ID, false},
		{"", "comfyui:" + old.URL, served.ID, false},
		{"", server.URL, served.ID, true},
		{"", server.URL, "gen-2.1", false},
		{"", old.URL, served.ID, false},
		{"preview", server.URL, served.ID, false},
		{server.URL, "preview", served.ID, true},
		{server.URL, old.URL, served.ID, true},
	} {
		live, err := engineconfig.NewLive(c.live, c.setting)
		if err != nil {
			t.Fatal(err)
		}
		editor, err := live.Open(t.Context(), &catalog.Model{ID: c.model, Kind: catalog.Edit})
		if err != nil {
			t.Fatal(err)
		}
		o, ok := editor.(interface{ Offloaded() bool })
		if got := ok && o.Offloaded(); got != c.offloaded {
			t.Errorf("%+v: edited by a server: %v", c, got)
		}
		editor.Close()
	}
	for _, wrong := range []string{"Preview", "openai:http://a", "comfyui:http://a", "http://a,"} {
		if _, err := engineconfig.NewLive(wrong, ""); err == nil || !strings.HasPrefix(err.Error(), "CUTROOM_LIVE_ENGINE: ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
