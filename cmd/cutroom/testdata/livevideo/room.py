"""Joins a room with LiveKit's Python client.

Publishes a red picture (or nothing, if the third argument is "watch"). Prints JSON lines about the received video:
the size and the mean luma and chroma of every tenth picture, and why the room ended.
"""

import asyncio
import json
import sys

from livekit import rtc

WIDTH, HEIGHT = 640, 360


def report(**what):
    print(json.dumps(what), flush=True)


def means(frame):
    pixels = frame.convert(rtc.VideoBufferType.I420).data
    luma = frame.width * frame.height
    chroma = ((frame.width + 1) // 2) * ((frame.height + 1) // 2)
    planes = pixels[:luma], pixels[luma : luma + chroma], pixels[luma + chroma :]
    return [round(sum(plane[::97]) / len(plane[::97])) for plane in planes]


async def show(track):
    seen = 0
    async for event in rtc.VideoStream(track):
        seen += 1
        if seen % 10 == 1:
            frame = event.frame
            report(seen=seen, width=frame.width, height=frame.height, means=means(frame))


async def hear(track):
    async for _ in rtc.AudioStream(track):
        report(heard=True)
        return


async def publish(room):
    camera = rtc.VideoSource(WIDTH, HEIGHT)
    microphone = rtc.AudioSource(48000, 1)
    await room.local_participant.publish_track(
        rtc.LocalVideoTrack.create_video_track("camera", camera),
        rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_CAMERA),
    )
    await room.local_participant.publish_track(
        rtc.LocalAudioTrack.create_audio_track("microphone", microphone),
        rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE),
    )
    report(published=True)
    red = bytes([200, 30, 30, 255]) * (WIDTH * HEIGHT)
    silence = rtc.AudioFrame.create(48000, 1, 1920)
    while True:
        camera.capture_frame(rtc.VideoFrame(WIDTH, HEIGHT, rtc.VideoBufferType.RGBA, red))
        await microphone.capture_frame(silence)
        await asyncio.sleep(0.04)


async def main():
    url, token, *watch = sys.argv[1:]
    room = rtc.Room()
    ended = asyncio.Event()
    tasks = []

    @room.on("track_subscribed")
    def _(track, publication, participant):
        report(subscribed=str(participant.identity), kind=int(track.kind))
        tasks.append(asyncio.create_task(show(track) if track.kind == rtc.TrackKind.KIND_VIDEO else hear(track)))

    @room.on("connection_state_changed")
    def _(state):
        report(state=rtc.ConnectionState.Name(state))

    @room.on("disconnected")
    def _(reason):
        report(left=rtc.DisconnectReason.Name(reason))
        ended.set()

    await room.connect(url, token, rtc.RoomOptions(auto_subscribe=True))
    report(joined=True)
    if not watch:
        tasks.append(asyncio.create_task(publish(room)))
    await ended.wait()


asyncio.run(main())
