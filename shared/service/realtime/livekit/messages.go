package livekit

// SignalRequest is a client's message. Exactly one field is set.
type SignalRequest struct {
	Offer    *SessionDescription `wire:"1"`
	Answer   *SessionDescription `wire:"2"`
	AddTrack *AddTrackRequest    `wire:"4"`
	Leave    *LeaveRequest       `wire:"8"`
	Ping     *int64              `wire:"14"`
	PingReq  *Ping               `wire:"16"`
}

// SignalResponse is a server's message. Exactly one field is set.
type SignalResponse struct {
	Join                     *JoinResponse             `wire:"1"`
	Answer                   *SessionDescription       `wire:"2"`
	Offer                    *SessionDescription       `wire:"3"`
	Update                   *ParticipantUpdate        `wire:"5"`
	TrackPublished           *TrackPublishedResponse   `wire:"6"`
	Leave                    *LeaveRequest             `wire:"8"`
	Pong                     *int64                    `wire:"18"`
	Reconnect                *ReconnectResponse        `wire:"19"`
	PongResp                 *Pong                     `wire:"20"`
	MediaSectionsRequirement *MediaSectionsRequirement `wire:"25"`
}

type TrackType int32

const (
	TrackAudio TrackType = 0
	TrackVideo TrackType = 1
)

type TrackSource int32

const (
	SourceCamera     TrackSource = 1
	SourceMicrophone TrackSource = 2
)

// TrailerFeature is a type of data that a client appends to its frames.
type TrailerFeature int32

// TrailerUserTimestamp is a timestamp set by the client.
const TrailerUserTimestamp TrailerFeature = 0

type VideoLayer struct {
	Quality uint32 `wire:"1"`
	Width   uint32 `wire:"2"`
	Height  uint32 `wire:"3"`
	Bitrate uint32 `wire:"4"`
	Rid     string `wire:"7"`
}

type AddTrackRequest struct {
	Cid                   string           `wire:"1"`
	Name                  string           `wire:"2"`
	Type                  TrackType        `wire:"3"`
	Width                 uint32           `wire:"4"`
	Height                uint32           `wire:"5"`
	Muted                 bool             `wire:"6"`
	Source                TrackSource      `wire:"8"`
	Layers                []*VideoLayer    `wire:"9,8"`
	Stream                string           `wire:"15"`
	PacketTrailerFeatures []TrailerFeature `wire:"18,8"`
}

// ICEServer is a TURN relay.
type ICEServer struct {
	Urls       []string `wire:"1,16"`
	Username   string   `wire:"2"`
	Credential string   `wire:"3"`
}

type Codec struct {
	Mime string `wire:"1"`
}

// Room describes a room. CreationTime is in seconds since 1970.
type Room struct {
	Sid             string `wire:"1"`
	Name            string `wire:"2"`
	CreationTime    int64  `wire:"5"`
	NumParticipants uint32 `wire:"9"`
}

type ParticipantPermission struct {
	CanSubscribe   bool `wire:"1"`
	CanPublish     bool `wire:"2"`
	CanPublishData bool `wire:"3"`
}

type SimulcastCodecInfo struct {
	MimeType string        `wire:"1"`
	Cid      string        `wire:"3"`
	Layers   []*VideoLayer `wire:"4,8"`
}

type TrackInfo struct {
	Sid                   string                `wire:"1"`
	Type                  TrackType             `wire:"2"`
	Name                  string                `wire:"3"`
	Muted                 bool                  `wire:"4"`
	Width                 uint32                `wire:"5"`
	Height                uint32                `wire:"6"`
	Source                TrackSource           `wire:"9"`
	Layers                []*VideoLayer         `wire:"10,8"`
	MimeType              string                `wire:"11"`
	Codecs                []*SimulcastCodecInfo `wire:"13,16"`
	Stream                string                `wire:"17"`
	PacketTrailerFeatures []TrailerFeature      `wire:"21,8"`
}

type ParticipantState int32

// A participant is in StateJoined before media flows, and in StateActive afterward.
const (
	StateJoined ParticipantState = 1
	StateActive ParticipantState = 2
)

// ParticipantInfo describes a participant. JoinedAt is in seconds since 1970.
type ParticipantInfo struct {
	Sid         string                 `wire:"1"`
	Identity    string                 `wire:"2"`
	State       ParticipantState       `wire:"3"`
	Tracks      []*TrackInfo           `wire:"4,64"`
	JoinedAt    int64                  `wire:"6"`
	Version     uint32                 `wire:"10"`
	Permission  *ParticipantPermission `wire:"11"`
	IsPublisher bool                   `wire:"13"`
}

type ServerInfo struct {
	Version  string `wire:"2"`
	Protocol int32  `wire:"3"`
}

// JoinResponse describes the room to a new participant. PingTimeout and PingInterval are in seconds.
type JoinResponse struct {
	Room                 *Room              `wire:"1"`
	Participant          *ParticipantInfo   `wire:"2"`
	OtherParticipants    []*ParticipantInfo `wire:"3,64"`
	ServerVersion        string             `wire:"4"`
	IceServers           []*ICEServer       `wire:"5,16"`
	SubscriberPrimary    bool               `wire:"6"`
	PingTimeout          int32              `wire:"10"`
	PingInterval         int32              `wire:"11"`
	ServerInfo           *ServerInfo        `wire:"12"`
	EnabledPublishCodecs []*Codec           `wire:"14,16"`
}

type ReconnectResponse struct {
	IceServers []*ICEServer `wire:"1,16"`
	ServerInfo *ServerInfo  `wire:"3"`
}

type TrackPublishedResponse struct {
	Cid   string     `wire:"1"`
	Track *TrackInfo `wire:"2"`
}

type SessionDescription struct {
	Type         string      `wire:"1"`
	Sdp          string      `wire:"2"`
	Id           uint32      `wire:"3"`
	MidToTrackId []*MidTrack `wire:"4,64"`
}

// MidTrack maps a section of a session description to a track.
type MidTrack struct {
	Mid     string `wire:"1"`
	TrackID string `wire:"2"`
}

type ParticipantUpdate struct {
	Participants []*ParticipantInfo `wire:"1,64"`
}

type DisconnectReason int32

const (
	ReasonClientInitiated    DisconnectReason = 1
	ReasonDuplicateIdentity  DisconnectReason = 2
	ReasonServerShutdown     DisconnectReason = 3
	ReasonParticipantRemoved DisconnectReason = 4
	ReasonRoomDeleted        DisconnectReason = 5
	ReasonStateMismatch      DisconnectReason = 6
	ReasonJoinFailure        DisconnectReason = 7
)

type LeaveAction int32

// ActionDisconnect is final. ActionReconnect makes the client join again.
const (
	ActionDisconnect LeaveAction = 0
	ActionReconnect  LeaveAction = 2
)

type LeaveRequest struct {
	CanReconnect bool             `wire:"1"`
	Reason       DisconnectReason `wire:"2"`
	Action       LeaveAction      `wire:"3"`
}

// Ping requests a Pong. Times are in milliseconds since 1970.
type Ping struct {
	Timestamp int64 `wire:"1"`
}

type Pong struct {
	LastPingTimestamp int64 `wire:"1"`
	Timestamp         int64 `wire:"2"`
}

// MediaSectionsRequirement asks a client for another offer that has more sections.
type MediaSectionsRequirement struct {
	NumAudios uint32 `wire:"1"`
	NumVideos uint32 `wire:"2"`
}

// JoinRequest is the first message from a version 1 client.
type JoinRequest struct {
	AddTrackRequests []*AddTrackRequest  `wire:"5,16"`
	PublisherOffer   *SessionDescription `wire:"6"`
	Reconnect        bool                `wire:"7"`
	ParticipantSid   string              `wire:"9"`
}

type Compression int32

const Gzip Compression = 1

type WrappedJoinRequest struct {
	Compression Compression `wire:"1"`
	JoinRequest []byte      `wire:"2"`
}
