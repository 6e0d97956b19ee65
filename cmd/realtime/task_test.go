package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/awstest"
)

const (
	// publicAddress is the task's address. taskHardware is the MAC address of its interface.
	publicAddress, taskHardware = "203.0.113.7", "0a:de:f6:10:51:e5"
	relayURL                    = "turns:turn.example.com:443?transport=tcp"
)

// inTask returns the environment of a Fargate task. Its credentials come from the agent, which
// knows only the task's private address. EC2 is simulated, because the local AWS has no public
// addresses. Calls to EC2 are checked against the role's permissions too.
func inTask(t *testing.T, role string, guard awstest.Guard) []string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /credentials", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{ // fails if the client has disconnected
			"AccessKeyId": role, "SecretAccessKey": "test", "Token": "token",
			"Expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		})
	})
	mux.HandleFunc("GET /v4/task", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"Networks": [{"IPv4Addresses": ["10.0.0.61"], "MACAddress": %q}]}`, taskHardware)
	})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<DescribeNetworkInterfacesResponse><networkInterfaceSet><item><macAddress>%s</macAddress>`+
			`<privateIpAddress>10.0.0.61</privateIpAddress><association><publicIp>%s</publicIp></association></item>`+
			`</networkInterfaceSet></DescribeNetworkInterfacesResponse>`, taskHardware, publicAddress)
	})
	agent := httptest.NewServer(mux)
	t.Cleanup(agent.Close)
	network := awstest.NewProxy(t, agent.URL, 1, awstest.Faults{})
	network.Guard(t, guard)
	return []string{
		"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI=" + agent.URL + "/credentials",
		"ECS_CONTAINER_METADATA_URI_V4=" + agent.URL + "/v4/task", "AWS_ENDPOINT_URL_EC2=" + network.URL,
		"CUTROOM_RTC_ADDR=127.0.0.1:0", "CUTROOM_RTC_PUBLIC=ecs", "CUTROOM_RTC_TURN=" + relayURL,
		"CUTROOM_PEER_ADDR=127.0.0.1:0",
	}
}

// joinsRoom checks that the session receives the task's public address and the relay, even if the
// load balancer sends the room's connection to another task.
func (c *client) joinsRoom(t *testing.T, by *instance) {
	t.Helper()
	ctx := await.TestContext(t)
	if err := c.Write(ctx, websocket.MessageText, []byte(`{"type":"livekit_join"}`)); err != nil {
		t.Fatal(err)
	}
	var info struct {
		URL   string `json:"livekit_url"`
		Token string `json:"token"`
	}
	eventually(t, "there is a room", func() bool {
		_, rest, found := strings.Cut(c.texts(), `{"type":"livekit_room_info",`)
		return found && json.NewDecoder(strings.NewReader("{"+rest)).Decode(&info) == nil
	})
	_, path, _ := strings.Cut(strings.TrimPrefix(info.URL, "ws://"), "/")
	signalling, _, err := websocket.Dial(ctx, "ws://"+by.address+"/"+path+"/rtc?access_token="+info.Token, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer signalling.CloseNow()
	signalling.SetReadLimit(1 << 20)
	var relays []*livekit.ICEServer
	for {
		_, content, err := signalling.Read(ctx)
		if err != nil {
			t.Fatalf("the server offers no media: %v", err)
		}
		var message livekit.SignalResponse
		if err := livekit.Unmarshal(content, &message); err != nil {
			t.Fatal(err)
		}
		if join := message.Join; join != nil {
			relays = join.IceServers
		}
		if offer := message.Offer; offer != nil {
			for line := range strings.Lines(offer.Sdp) {
				if strings.HasPrefix(line, "a=candidate:") && !strings.Contains(line, " "+publicAddress+" ") {
					t.Errorf("clients receive %s", line)
				}
			}
			if !strings.Contains(offer.Sdp, " "+publicAddress+" ") {
				t.Errorf("clients do not receive the public address: %s", offer.Sdp)
			}
			break
		}
	}
	if len(relays) != 1 || relays[0].Urls[0] != relayURL || relays[0].Credential == "" {
		t.Errorf("clients receive %v", relays)
	}
}

func TestTaskWithoutAddressDoesNotStart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"Networks": [{"IPv4Addresses": ["10.0.0.61"], "MACAddress": "`+taskHardware+`"}]}`)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Response><Errors><Error><Code>UnauthorizedOperation</Code>"+
			"<Message>You are not authorized.</Message></Error></Errors></Response>")
	}))
	t.Cleanup(agent.Close)
	text := f.failsToStart("CUTROOM_RTC_ADDR=127.0.0.1:0", "CUTROOM_RTC_PUBLIC=ecs", "AWS_REGION=eu-central-1",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_ENDPOINT_URL_EC2="+agent.URL,
		"ECS_CONTAINER_METADATA_URI_V4="+agent.URL)
	if !strings.Contains(text, "CUTROOM_RTC_PUBLIC: ec2: describe the task's interface: api error UnauthorizedOperation") {
		t.Errorf("the output is %s", text)
	}
}
