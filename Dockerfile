# Builds the images of this repository's programs. Each image contains FFmpeg and one program. `make images` builds
# them all. To build one yourself:
#   docker build --target server --tag cutroom .                            the one-machine server
#   docker build --build-arg PROGRAM=worker --tag cutroom-worker .          or media, or realtime
# BuildKit is optional. To build for another processor, add --platform linux/arm64, and without BuildKit also
# --build-arg TARGETARCH=arm64. The build runs on this machine's processor and cross-compiles.
ARG DEBIAN=debian:bookworm-slim
ARG GOLANG=golang:1.26-bookworm

FROM --platform=${BUILDPLATFORM:-linux} ${DEBIAN} AS ffmpeg
ARG TARGETARCH
COPY scripts/build-ffmpeg.sh /
RUN /build-ffmpeg.sh /image ${TARGETARCH}

# This stage installs the library that signs results: see docs/provenance.md.
FROM --platform=${BUILDPLATFORM:-linux} ${DEBIAN} AS c2pa
ARG TARGETARCH
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates python3 python3-pip \
 && rm -rf /var/lib/apt/lists/*
COPY scripts/install-c2pa.sh scripts/requirements-c2pa.txt /source/scripts/
RUN /source/scripts/install-c2pa.sh /image/usr/local/lib ${TARGETARCH}

FROM --platform=${BUILDPLATFORM:-linux} ${GOLANG} AS build
WORKDIR /source
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY shared shared
ARG TARGETARCH
# Build all programs at once, so that shared packages are compiled only once for all images. Omit DWARF data, because
# the next step would strip it anyway.
ARG PROGRAMS=./cmd/...
ENV CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -gcflags=all=-dwarf=false"
RUN GOARCH=$TARGETARCH go build ${PROGRAMS}
# If only VERSION changes, this step links the programs again without compiling them.
ARG VERSION=devel
RUN GOARCH=$TARGETARCH go build -ldflags "-s -w -X main.built=${VERSION}" -o /programs/ ${PROGRAMS}
COPY LICENSE ./
COPY scripts/module-licenses.sh scripts/
RUN install -D LICENSE /image/usr/share/doc/cutroom/LICENSE && scripts/module-licenses.sh /image/usr/share/doc/cutroom
# Create the other files of the images: users, certificates, and writable folders.
RUN mkdir -p /image/etc/ssl/certs /image/usr/share/doc/ca-certificates /image/var/lib/dpkg/status.d \
 && printf 'root:x:0:0::/:\ncutroom:x:10001:10001::/var/lib/cutroom:\n' >/image/etc/passwd \
 && printf 'root:x:0:\ncutroom:x:10001:\n' >/image/etc/group \
 && dpkg-query --status ca-certificates >/image/var/lib/dpkg/status.d/ca-certificates \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && cp /usr/share/doc/ca-certificates/copyright /image/usr/share/doc/ca-certificates/ \
 && install -d -o 10001 -g 10001 /image/var/lib/cutroom /image/scratch /image/data /image/data/scratch \
 && install -d -m 1777 /image/tmp

# All images are based on this stage.
FROM scratch AS base
COPY --from=build /image /
COPY --from=ffmpeg /image /
COPY --from=c2pa /image /
# A deployer can replace these files. The defaults are the built-in ones.
ARG CATALOG=shared/domain/catalog/catalog.yaml
ARG TIERS=shared/domain/credential/tiers.yaml
COPY ${CATALOG} /etc/cutroom/catalog.yaml
COPY ${TIERS} /etc/cutroom/tiers.yaml
ENV PATH=/usr/local/bin:/usr/bin HOME=/var/lib/cutroom
USER 10001:10001
ARG VERSION=devel REVISION=unknown
LABEL org.opencontainers.image.licenses="Apache-2.0 AND GPL-2.0-or-later AND LGPL-3.0-or-later" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.vendor="Cutroom"

# The image of the one-machine server, which writes only to /data.
FROM base AS server
# Docker's older builder builds this stage for the other images too. Then PROGRAM is not cutroom.
ARG PROGRAM=cutroom
COPY --from=build /programs/${PROGRAM} /usr/local/bin/cutroom
LABEL org.opencontainers.image.title="cutroom" \
      org.opencontainers.image.description="A media editing API and an LLM gateway on one machine"
VOLUME ["/data"]
ENV CUTROOM_DATA=/data CUTROOM_ADDR=:8080 CUTROOM_INFERENCE_ADDR=:8081
WORKDIR /data
EXPOSE 8080 8081
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=3 CMD ["/usr/local/bin/cutroom", "health"]
ENTRYPOINT ["/usr/local/bin/cutroom"]
CMD ["dev"]

# The image of a program that runs in a container of a deployment: worker, media or realtime.
FROM base
ARG PROGRAM=worker
COPY --from=build /programs/${PROGRAM} /usr/local/bin/program
LABEL org.opencontainers.image.title="cutroom-${PROGRAM}" \
      org.opencontainers.image.description="The ${PROGRAM} of Cutroom, a media editing API and an LLM gateway"
# /scratch is the only writable folder, so the rest may be mounted read-only. On Fargate, a volume keeps the folder's
# owner only if the image declares the volume.
VOLUME ["/scratch"]
ENV TMPDIR=/scratch
WORKDIR /var/lib/cutroom
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 CMD ["/usr/local/bin/program", "-health"]
ENTRYPOINT ["/usr/local/bin/program"]
