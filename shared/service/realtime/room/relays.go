package room

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"strconv"
	"time"

	"cutroom/shared/service/realtime/livekit"
)

// Relays are TURN servers that pass on the media of clients whose networks let nothing
// through to the ports. They share a secret with this server, by which they know the
// credentials that it makes: a name that begins with the time at which it expires, and
// its digest (draft-uberti-behave-turn-rest-00, section 2.2).
type Relays struct {
	// URLs are those of RFC 7065, such as turns:turn.example.com:443?transport=tcp; there
	// are no relays if it is empty.
	URLs []string
	// Secret is the one that is shared.
	Secret []byte
}

// relayTime is how long credentials hold. Relays ask for them again while media flows, so
// they have to last as long as a session does; whoever resumes gets new ones.
const relayTime = 24 * time.Hour

// credentials are those of a session from now on.
func (r Relays) credentials(session string, now time.Time) (name, password string) {
	name = strconv.FormatInt(now.Add(relayTime).Unix(), 10) + ":" + session
	digest := hmac.New(sha1.New, r.Secret) // the relays know no other
	digest.Write([]byte(name))
	return name, base64.StdEncoding.EncodeToString(digest.Sum(nil))
}

// relays returns what a participant of the room is told.
func (r *Room) relays() []*livekit.ICEServer {
	relays := r.server.config.Relays
	if len(relays.URLs) == 0 {
		return nil
	}
	name, password := relays.credentials(r.config.Session, r.server.config.Now())
	return []*livekit.ICEServer{{Urls: relays.URLs, Username: name, Credential: password}}
}
