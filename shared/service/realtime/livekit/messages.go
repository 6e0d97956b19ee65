package livekit

// The maximum lengths of lists in messages. Clients announce a microphone, and a camera in three sizes.
const (
	maxLayers   = 8
	maxFeatures = 8
	maxRequests = 16
	maxTracks   = 64
	maxOthers   = 64
	maxServers  = 16
	maxURLs     = 16
	maxCodecs   = 16
	maxMids     = 64
)

// SignalRequest is a client's message. Exactly one field is set.
type SignalRequest struct {
	Offer    *SessionDescription
	Answer   *SessionDescription
	AddTrack *AddTrackRequest
	Leave    *LeaveRequest
	Ping     *int64
	PingReq  *Ping
}

func (m *SignalRequest) fields(w *wire) {
	visitMessage(w, 1, &m.Offer)
	visitMessage(w, 2, &m.Answer)
	visitMessage(w, 4, &m.AddTrack)
	visitMessage(w, 8, &m.Leave)
	visitChoice(w, 14, &m.Ping)
	visitMessage(w, 16, &m.PingReq)
}

// SignalResponse is a server's message. Exactly one field is set.
type SignalResponse struct {
	Join                     *JoinResponse
	Answer                   *SessionDescription
	Offer                    *SessionDescription
	Update                   *ParticipantUpdate
	TrackPublished           *TrackPublishedResponse
	Leave                    *LeaveRequest
	Pong                     *int64
	Reconnect                *ReconnectResponse
	PongResp                 *Pong
	MediaSectionsRequirement *MediaSectionsRequirement
}

func (m *SignalResponse) fields(w *wire) {
	visitMessage(w, 1, &m.Join)
	visitMessage(w, 2, &m.Answer)
	visitMessage(w, 3, &m.Offer)
	visitMessage(w, 5, &m.Update)
	visitMessage(w, 6, &m.TrackPublished)
	visitMessage(w, 8, &m.Leave)
	visitChoice(w, 18, &m.Pong)
	visitMessage(w, 19, &m.Reconnect)
	visitMessage(w, 20, &m.PongResp)
	visitMessage(w, 25, &m.MediaSectionsRequirement)
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
	Quality, Width, Height, Bitrate uint32
	Rid                             string
}

func (m *VideoLayer) fields(w *wire) {
	visitNumber(w, 1, &m.Quality)
	visitNumber(w, 2, &m.Width)
	visitNumber(w, 3, &m.Height)
	visitNumber(w, 4, &m.Bitrate)
	visitText(w, 7, &m.Rid)
}

type AddTrackRequest struct {
	Cid, Name             string
	Type                  TrackType
	Width, Height         uint32
	Muted                 bool
	Source                TrackSource
	Layers                []*VideoLayer
	Stream                string
	PacketTrailerFeatures []TrailerFeature
}

func (m *AddTrackRequest) fields(w *wire) {
	visitText(w, 1, &m.Cid)
	visitText(w, 2, &m.Name)
	visitNumber(w, 3, &m.Type)
	visitNumber(w, 4, &m.Width)
	visitNumber(w, 5, &m.Height)
	visitFlag(w, 6, &m.Muted)
	visitNumber(w, 8, &m.Source)
	visitMessages(w, 9, maxLayers, &m.Layers)
	visitText(w, 15, &m.Stream)
	visitNumbers(w, 18, maxFeatures, &m.PacketTrailerFeatures)
}

// ICEServer is a TURN relay.
type ICEServer struct {
	Urls                 []string
	Username, Credential string
}

func (m *ICEServer) fields(w *wire) {
	visitTexts(w, 1, maxURLs, &m.Urls)
	visitText(w, 2, &m.Username)
	visitText(w, 3, &m.Credential)
}

type Codec struct{ Mime string }

func (m *Codec) fields(w *wire) { visitText(w, 1, &m.Mime) }

// Room describes a room. CreationTime is in seconds since 1970.
type Room struct {
	Sid, Name       string
	CreationTime    int64
	NumParticipants uint32
}

func (m *Room) fields(w *wire) {
	visitText(w, 1, &m.Sid)
	visitText(w, 2, &m.Name)
	visitNumber(w, 5, &m.CreationTime)
	visitNumber(w, 9, &m.NumParticipants)
}

type ParticipantPermission struct{ CanSubscribe, CanPublish, CanPublishData bool }

func (m *ParticipantPermission) fields(w *wire) {
	visitFlag(w, 1, &m.CanSubscribe)
	visitFlag(w, 2, &m.CanPublish)
	visitFlag(w, 3, &m.CanPublishData)
}

type SimulcastCodecInfo struct {
	MimeType, Cid string
	Layers        []*VideoLayer
}

func (m *SimulcastCodecInfo) fields(w *wire) {
	visitText(w, 1, &m.MimeType)
	visitText(w, 3, &m.Cid)
	visitMessages(w, 4, maxLayers, &m.Layers)
}

type TrackInfo struct {
	Sid                   string
	Type                  TrackType
	Name                  string
	Muted                 bool
	Width, Height         uint32
	Source                TrackSource
	Layers                []*VideoLayer
	MimeType              string
	Codecs                []*SimulcastCodecInfo
	Stream                string
	PacketTrailerFeatures []TrailerFeature
}

func (m *TrackInfo) fields(w *wire) {
	visitText(w, 1, &m.Sid)
	visitNumber(w, 2, &m.Type)
	visitText(w, 3, &m.Name)
	visitFlag(w, 4, &m.Muted)
	visitNumber(w, 5, &m.Width)
	visitNumber(w, 6, &m.Height)
	visitNumber(w, 9, &m.Source)
	visitMessages(w, 10, maxLayers, &m.Layers)
	visitText(w, 11, &m.MimeType)
	visitMessages(w, 13, maxCodecs, &m.Codecs)
	visitText(w, 17, &m.Stream)
	visitNumbers(w, 21, maxFeatures, &m.PacketTrailerFeatures)
}

type ParticipantState int32

// A participant is in StateJoined before media flows, and in StateActive afterward.
const (
	StateJoined ParticipantState = 1
	StateActive ParticipantState = 2
)

// ParticipantInfo describes a participant. JoinedAt is in seconds since 1970.
type ParticipantInfo struct {
	Sid, Identity string
	State         ParticipantState
	Tracks        []*TrackInfo
	JoinedAt      int64
	Version       uint32
	Permission    *ParticipantPermission
	IsPublisher   bool
}

func (m *ParticipantInfo) fields(w *wire) {
	visitText(w, 1, &m.Sid)
	visitText(w, 2, &m.Identity)
	visitNumber(w, 3, &m.State)
	visitMessages(w, 4, maxTracks, &m.Tracks)
	visitNumber(w, 6, &m.JoinedAt)
	visitNumber(w, 10, &m.Version)
	visitMessage(w, 11, &m.Permission)
	visitFlag(w, 13, &m.IsPublisher)
}

type ServerInfo struct {
	Version  string
	Protocol int32
}

func (m *ServerInfo) fields(w *wire) {
	visitText(w, 2, &m.Version)
	visitNumber(w, 3, &m.Protocol)
}

// JoinResponse describes the room to a new participant. PingTimeout and PingInterval are in seconds.
type JoinResponse struct {
	Room                      *Room
	Participant               *ParticipantInfo
	OtherParticipants         []*ParticipantInfo
	ServerVersion             string
	IceServers                []*ICEServer
	SubscriberPrimary         bool
	PingTimeout, PingInterval int32
	ServerInfo                *ServerInfo
	EnabledPublishCodecs      []*Codec
}

func (m *JoinResponse) fields(w *wire) {
	visitMessage(w, 1, &m.Room)
	visitMessage(w, 2, &m.Participant)
	visitMessages(w, 3, maxOthers, &m.OtherParticipants)
	visitText(w, 4, &m.ServerVersion)
	visitMessages(w, 5, maxServers, &m.IceServers)
	visitFlag(w, 6, &m.SubscriberPrimary)
	visitNumber(w, 10, &m.PingTimeout)
	visitNumber(w, 11, &m.PingInterval)
	visitMessage(w, 12, &m.ServerInfo)
	visitMessages(w, 14, maxCodecs, &m.EnabledPublishCodecs)
}

type ReconnectResponse struct {
	IceServers []*ICEServer
	ServerInfo *ServerInfo
}

func (m *ReconnectResponse) fields(w *wire) {
	visitMessages(w, 1, maxServers, &m.IceServers)
	visitMessage(w, 3, &m.ServerInfo)
}

type TrackPublishedResponse struct {
	Cid   string
	Track *TrackInfo
}

func (m *TrackPublishedResponse) fields(w *wire) {
	visitText(w, 1, &m.Cid)
	visitMessage(w, 2, &m.Track)
}

type SessionDescription struct {
	Type, Sdp    string
	Id           uint32
	MidToTrackId []*MidTrack
}

func (m *SessionDescription) fields(w *wire) {
	visitText(w, 1, &m.Type)
	visitText(w, 2, &m.Sdp)
	visitNumber(w, 3, &m.Id)
	visitMessages(w, 4, maxMids, &m.MidToTrackId)
}

// MidTrack maps a section of a session description to a track.
type MidTrack struct{ Mid, TrackID string }

func (m *MidTrack) fields(w *wire) {
	visitText(w, 1, &m.Mid)
	visitText(w, 2, &m.TrackID)
}

type ParticipantUpdate struct{ Participants []*ParticipantInfo }

func (m *ParticipantUpdate) fields(w *wire) {
	visitMessages(w, 1, maxOthers, &m.Participants)
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
	CanReconnect bool
	Reason       DisconnectReason
	Action       LeaveAction
}

func (m *LeaveRequest) fields(w *wire) {
	visitFlag(w, 1, &m.CanReconnect)
	visitNumber(w, 2, &m.Reason)
	visitNumber(w, 3, &m.Action)
}

// Ping requests a Pong. Times are in milliseconds since 1970.
type Ping struct{ Timestamp int64 }

func (m *Ping) fields(w *wire) { visitNumber(w, 1, &m.Timestamp) }

type Pong struct{ LastPingTimestamp, Timestamp int64 }

func (m *Pong) fields(w *wire) {
	visitNumber(w, 1, &m.LastPingTimestamp)
	visitNumber(w, 2, &m.Timestamp)
}

// MediaSectionsRequirement asks a client for another offer that has more sections.
type MediaSectionsRequirement struct{ NumAudios, NumVideos uint32 }

func (m *MediaSectionsRequirement) fields(w *wire) {
	visitNumber(w, 1, &m.NumAudios)
	visitNumber(w, 2, &m.NumVideos)
}

// JoinRequest is the first message from a version 1 client.
type JoinRequest struct {
	AddTrackRequests []*AddTrackRequest
	PublisherOffer   *SessionDescription
	Reconnect        bool
	ParticipantSid   string
}

func (m *JoinRequest) fields(w *wire) {
	visitMessages(w, 5, maxRequests, &m.AddTrackRequests)
	visitMessage(w, 6, &m.PublisherOffer)
	visitFlag(w, 7, &m.Reconnect)
	visitText(w, 9, &m.ParticipantSid)
}

type Compression int32

const Gzip Compression = 1

type WrappedJoinRequest struct {
	Compression Compression
	JoinRequest []byte
}

func (m *WrappedJoinRequest) fields(w *wire) {
	visitNumber(w, 1, &m.Compression)
	visitBytes(w, 2, &m.JoinRequest)
}
