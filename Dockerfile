# A bot with the packed plugin, Koishi and adapters, without the tools that build them. docs/docker.md says how to run it.
# `npm run check:image` carries these steps out in plain folders, for machines without a container engine. For that, RUN takes absolute
# paths from variables only.

# What it makes runs on every architecture, so that only the last stage is built for each.
FROM --platform=$BUILDPLATFORM node:22-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
COPY plugins/mqtt/package.json plugins/mqtt/
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json README.md README.zh-CN.md CHANGELOG.md LICENSE ./
COPY scripts scripts
COPY cli cli
COPY src src
COPY bot bot
COPY client client
COPY simulator simulator
COPY plugins plugins
RUN npm pack && mv koishi-plugin-message-relay-*.tgz plugin.tgz

FROM --platform=$BUILDPLATFORM node:22-slim AS install
WORKDIR /app
COPY container/package.json container/package-lock.json ./
COPY --from=build /build/plugin.tgz ./
RUN npm ci --omit=dev --no-audit --no-fund && rm plugin.tgz
COPY container/koishi.yml ./
COPY --from=build /build/dist/bot/start.js dist/bot/

FROM node:22-slim
# The user that the bot runs as: that of `node` in the base image.
ARG USER_ID=1000
ENV NODE_ENV=production DATA_DIR=/data UPLOAD_DIR=/uploads
# The platform reads uploads from its own container, under another user. The data is the bot's alone.
RUN install -d -o "$USER_ID" -m 700 "$DATA_DIR" && install -d -o "$USER_ID" -m 755 "$UPLOAD_DIR"
WORKDIR /app
COPY --from=install /app ./
USER $USER_ID
VOLUME ["/data", "/uploads"]
EXPOSE 8081
# Whether the process answers. A relay whose account is offline, or that stands by, is healthy: a restart would not help it.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD node -e "fetch(['http://127.0.0.1:${WEBHOOK_PORT:-8081}', ...'${WEBHOOK_PATH}'.split('/').filter(Boolean), 'healthz'].join('/')) \
  .then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"
CMD ["node", "dist/bot/start.js"]
