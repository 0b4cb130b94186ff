# The image of all services in compose.yaml: the program in a virtual environment, no compiler, no root.
# Every dependency has a ready-made wheel for this Python: no compiler is needed.
FROM python:3.12-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY . .
RUN python -m venv /opt/lienworker \
    && /opt/lienworker/bin/pip install --quiet --constraint constraints.txt . \
    && /opt/lienworker/bin/pip uninstall --quiet --yes pip

FROM python:3.12-slim-bookworm
# The data folder belongs to the user; an empty named volume takes its owner and mode from here.
RUN groupadd --gid 10001 lienworker \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin lienworker \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data
COPY --from=build /opt/lienworker /opt/lienworker
ENV PATH=/opt/lienworker/bin:$PATH \
    LIENWORKER_DATA_DIR=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
EXPOSE 5555
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["lienworker", "health", "workers"]
# All in one, with a Redis of its own; compose.yaml runs the parts as services instead.
CMD ["lienworker", "up"]
