# The image of a container program of this repository, such as
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
 && useradd --system --uid 10001 --create-home --home-dir /var/lib/cutroom cutroom
# A deployer's files; without them these are the ones that are built in anyway.
ARG CATALOG=shared/model/catalog.yaml
ARG TIERS=shared/credential/tiers.yaml
COPY ${CATALOG} /etc/cutroom/catalog.yaml
COPY ${TIERS} /etc/cutroom/tiers.yaml
COPY --from=build /program /usr/local/bin/program
USER 10001
WORKDIR /var/lib/cutroom
ENTRYPOINT ["/usr/local/bin/program"]
