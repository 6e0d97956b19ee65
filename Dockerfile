# The image of a container program of this repository, cmd/worker, cmd/realtime or
# cmd/media, such as
#   docker build --build-arg PROGRAM=cmd/worker .
# The deploy builds it by itself.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /source
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG PROGRAM TARGETARCH
RUN CGO_ENABLED=0 GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w" -o /program "./$PROGRAM"

FROM debian:bookworm-slim
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates ffmpeg \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --create-home --home-dir /var/lib/cutroom cutroom \
 && install -d -o cutroom -g cutroom /scratch
# A deployer's files; without them these are the ones that are built in anyway.
ARG CATALOG=shared/domain/catalog/catalog.yaml
ARG TIERS=shared/domain/credential/tiers.yaml
COPY ${CATALOG} /etc/cutroom/catalog.yaml
COPY ${TIERS} /etc/cutroom/tiers.yaml
COPY --from=build /program /usr/local/bin/program
# What is written, and nothing else: the rest may be mounted read-only. A volume of
# Fargate keeps the folder's owner only where the image declares it.
VOLUME ["/scratch"]
ENV TMPDIR=/scratch
USER 10001
WORKDIR /var/lib/cutroom
EXPOSE 8080
# All of them tell their health at the port of CUTROOM_ADDR, and bash can ask for it
# by itself.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["bash", "-c", "address=${CUTROOM_ADDR:-:8080} && exec 3<>\"/dev/tcp/127.0.0.1/${address##*:}\" && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["/usr/local/bin/program"]
