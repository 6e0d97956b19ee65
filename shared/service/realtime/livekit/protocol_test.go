package livekit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cutroom/shared/service/realtime/livekit"
)

var (
	layer      = &livekit.VideoLayer{Quality: 2, Width: 1, Height: 2, Bitrate: 3, Rid: "f"}
	permission = &livekit.ParticipantPermission{CanSubscribe: true, CanPublish: true, CanPublishData: true}
	server     = &livekit.ServerInfo{Version: "1", Protocol: 16}
	relay      = &livekit.ICEServer{Urls: []string{"turn:a", "turn:b"}, Username: "u", Credential: "c"}
	described  = &livekit.SessionDescription{
		Type: "offer", Sdp: "v=0 é", Id: 1 << 31, MidToTrackId: []*livekit.MidTrack{{Mid: "0", TrackID: "TR_1"}},
	}
	track = &livekit.TrackInfo{
		Sid: "TR_1", Type: livekit.TrackVideo, Name: "n", Muted: true, Width: 1, Height: 2, Source: livekit.SourceCamera,
		Layers: []*livekit.VideoLayer{layer, {}}, MimeType: "video/VP8",
		Codecs: []*livekit.SimulcastCodecInfo{{MimeType: "m", Cid: "c", Layers: []*livekit.VideoLayer{layer}}},
		Stream: "s", PacketTrailerFeatures: []livekit.TrailerFeature{livekit.TrailerUserTimestamp, 2},
	}
	participant = &livekit.ParticipantInfo{
		Sid: "PA_1", Identity: "i", State: livekit.StateActive, Tracks: []*livekit.TrackInfo{track}, JoinedAt: 1 << 40,
		Version: 7, Permission: permission, IsPublisher: true,
	}
	adding = &livekit.AddTrackRequest{
		Cid: "c", Name: "n", Type: livekit.TrackVideo, Width: 1, Height: 2, Muted: true, Source: livekit.SourceMicrophone,
		Layers: []*livekit.VideoLayer{layer}, Stream: "s", PacketTrailerFeatures: []livekit.TrailerFeature{1},
	}
	joined = &livekit.JoinResponse{
		Room:        &livekit.Room{Sid: "RM_1", Name: "n", CreationTime: 1 << 40, NumParticipants: 2},
		Participant: participant, OtherParticipants: []*livekit.ParticipantInfo{{State: livekit.StateJoined}},
		ServerVersion: "1", IceServers: []*livekit.ICEServer{relay}, SubscriberPrimary: true, PingTimeout: 15,
		PingInterval: 5, ServerInfo: server, EnabledPublishCodecs: []*livekit.Codec{{Mime: "video/VP8"}},
	}
	zero, negative = int64(0), int64(-1)
)

const (
	layerJSON = `{"quality":"HIGH","width":1,"height":2,"bitrate":3,"rid":"f"}`
	trackJSON = `{"sid":"TR_1","type":"VIDEO","name":"n","muted":true,"width":1,"height":2,"source":"CAMERA",
		"layers":[` + layerJSON + `,{}],"mime_type":"video/VP8",
		"codecs":[{"mime_type":"m","cid":"c","layers":[` + layerJSON + `]}],"stream":"s",
		"packet_trailer_features":["PTF_USER_TIMESTAMP","PTF_USER_DATA"]}`
	participantJSON = `{"sid":"PA_1","identity":"i","state":"ACTIVE","tracks":[` + trackJSON + `],
		"joined_at":"1099511627776","version":7,"is_publisher":true,
		"permission":{"can_subscribe":true,"can_publish":true,"can_publish_data":true}}`
	addingJSON = `{"cid":"c","name":"n","type":"VIDEO","width":1,"height":2,"muted":true,"source":"MICROPHONE",
		"layers":[` + layerJSON + `],"stream":"s","packet_trailer_features":["PTF_FRAME_ID"]}`
	describedJSON = `{"type":"offer","sdp":"v=0 é","id":2147483648,"mid_to_track_id":{"0":"TR_1"}}`
	serversJSON   = `"ice_servers":[{"urls":["turn:a","turn:b"],"username":"u","credential":"c"}],
		"server_info":{"version":"1","protocol":16}`
)

// compared returns messages that together set every field at least once, and their contents.
func compared() (messages []any, contents []string) {
	add := func(m any, content string) {
		messages, contents = append(messages, m), append(contents, content)
	}
	request := func(m livekit.SignalRequest, content string) { add(&m, content) }
	response := func(m livekit.SignalResponse, content string) { add(&m, content) }
	request(livekit.SignalRequest{Offer: described}, `{"offer":`+describedJSON+`}`)
	request(livekit.SignalRequest{Answer: described}, `{"answer":`+describedJSON+`}`)
	request(livekit.SignalRequest{AddTrack: adding}, `{"add_track":`+addingJSON+`}`)
	request(livekit.SignalRequest{Leave: &livekit.LeaveRequest{}}, `{"leave":{}}`)
	request(livekit.SignalRequest{Ping: &zero}, `{"ping":"0"}`)
	request(livekit.SignalRequest{PingReq: &livekit.Ping{Timestamp: -1}}, `{"ping_req":{"timestamp":"-1"}}`)
	response(livekit.SignalResponse{Join: joined}, `{"join":{
		"room":{"sid":"RM_1","name":"n","creation_time":"1099511627776","num_participants":2},
		"participant":`+participantJSON+`,"other_participants":[{"state":"JOINED"}],"server_version":"1",
		"subscriber_primary":true,"ping_timeout":15,"ping_interval":5,
		"enabled_publish_codecs":[{"mime":"video/VP8"}],`+serversJSON+`}}`)
	response(livekit.SignalResponse{Answer: described}, `{"answer":`+describedJSON+`}`)
	response(livekit.SignalResponse{Offer: described}, `{"offer":`+describedJSON+`}`)
	response(livekit.SignalResponse{Update: &livekit.ParticipantUpdate{
		Participants: []*livekit.ParticipantInfo{participant},
	}}, `{"update":{"participants":[`+participantJSON+`]}}`)
	response(livekit.SignalResponse{TrackPublished: &livekit.TrackPublishedResponse{Cid: "c", Track: track}},
		`{"track_published":{"cid":"c","track":`+trackJSON+`}}`)
	response(livekit.SignalResponse{Pong: &negative}, `{"pong":"-1"}`)
	response(livekit.SignalResponse{Reconnect: &livekit.ReconnectResponse{
		IceServers: []*livekit.ICEServer{relay}, ServerInfo: server,
	}}, `{"reconnect":{`+serversJSON+`}}`)
	response(livekit.SignalResponse{PongResp: &livekit.Pong{LastPingTimestamp: 1, Timestamp: 2}},
		`{"pong_resp":{"last_ping_timestamp":"1","timestamp":"2"}}`)
	response(livekit.SignalResponse{MediaSectionsRequirement: &livekit.MediaSectionsRequirement{
		NumAudios: 1, NumVideos: 2,
	}}, `{"media_sections_requirement":{"num_audios":1,"num_videos":2}}`)
	for reason, name := range map[livekit.DisconnectReason]string{
		livekit.ReasonClientInitiated: "CLIENT_INITIATED", livekit.ReasonDuplicateIdentity: "DUPLICATE_IDENTITY",
		livekit.ReasonServerShutdown: "SERVER_SHUTDOWN", livekit.ReasonParticipantRemoved: "PARTICIPANT_REMOVED",
		livekit.ReasonRoomDeleted: "ROOM_DELETED", livekit.ReasonStateMismatch: "STATE_MISMATCH",
		livekit.ReasonJoinFailure: "JOIN_FAILURE",
	} {
		leave := &livekit.LeaveRequest{CanReconnect: true, Reason: reason, Action: livekit.ActionReconnect}
		response(livekit.SignalResponse{Leave: leave},
			fmt.Sprintf(`{"leave":{"can_reconnect":true,"reason":%q,"action":"RECONNECT"}}`, name))
	}
	add(&livekit.JoinRequest{
		AddTrackRequests: []*livekit.AddTrackRequest{adding}, PublisherOffer: described, Reconnect: true, ParticipantSid: "PA_1",
	}, `{"add_track_requests":[`+addingJSON+`],"publisher_offer":`+describedJSON+`,
		"reconnect":true,"participant_sid":"PA_1"}`)
	add(&livekit.WrappedJoinRequest{Compression: livekit.Gzip, JoinRequest: []byte("join")},
		`{"compression":"GZIP","join_request":"am9pbg=="}`)
	return messages, contents
}

// LiveKit's own package decodes the messages that this package encodes, and vice versa.
func TestMessagesMatchLiveKit(t *testing.T) {
	python, err := filepath.Abs(filepath.Join("..", "..", "..", "..", ".tools", "python", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	messages, contents := compared()
	var lines bytes.Buffer
	for i, message := range messages {
		line, err := json.Marshal(map[string]any{
			"name": reflect.TypeOf(message).Elem().Name(), "encoded": livekit.Marshal(message),
			"content": json.RawMessage(contents[i]),
		})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	// Read the script, so that Go does not use a cached test result if the script changes.
	script, err := os.ReadFile(filepath.Join("testdata", "compare.py"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), python, "-c", string(script))
	command.Stdin = &lines
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v (scripts/install-test-tools.sh installs what this needs)\n%s", err, out)
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != len(messages) {
		t.Fatalf("%d answers to %d messages:\n%s", len(answers), len(messages), out)
	}
	for i, answer := range answers {
		var encoded []byte
		if json.Unmarshal([]byte(`"`+answer+`"`), &encoded) != nil {
			t.Error(answer)
			continue
		}
		decoded := reflect.New(reflect.TypeOf(messages[i]).Elem()).Interface()
		if err := livekit.Unmarshal(encoded, decoded); err != nil || !reflect.DeepEqual(decoded, messages[i]) {
			t.Errorf("%s is decoded as %s, %v", contents[i], livekit.Marshal(decoded), err)
		}
	}
}
