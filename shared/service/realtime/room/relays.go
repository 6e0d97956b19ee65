package room

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"strconv"
	"time"

	"cutroom/shared/service/realtime/livekit"
)

// Relays configures TURN servers, for clients whose networks block the ports. The relays know the
// secret. A user name starts with its expiry time, and the password is the name's digest, which the
// relays verify (draft-uberti-behave-turn-rest-00, section 2.2).
type Relays struct {
	// URLs lists the relays, if any, such as turns:turn.example.com:443?transport=tcp (RFC 7065).
	URLs   []string
	Secret []byte
}

// relayTime is the lifetime of credentials. They must last for a session, because relays check them
// repeatedly. A client that resumes gets new ones.
const relayTime = 24 * time.Hour

func (r Relays) credentials(session string, now time.Time) (name, password string) {
	name = strconv.FormatInt(now.Add(relayTime).Unix(), 10) + ":" + session
	digest := hmac.New(sha1.New, r.Secret) // the only digest that relays support
	digest.Write([]byte(name))
	return name, base64.StdEncoding.EncodeToString(digest.Sum(nil))
}

func (r *Room) relays() []*livekit.ICEServer {
	relays := r.server.config.Relays
	if len(relays.URLs) == 0 {
		return nil
	}
	name, password := relays.credentials(r.config.Session, r.server.config.Now())
	return []*livekit.ICEServer{{Urls: relays.URLs, Username: name, Credential: password}}
}
