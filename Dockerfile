# One image for all workers; docker-compose.yml runs it once per agent.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /venv
# The libraries change seldom: a layer of their own, made from the project's description and empty packages.
COPY pyproject.toml constraints.txt README.md LICENSE ./
RUN mkdir agents gateways shared \
 && /venv/bin/pip install --no-cache-dir --constraint constraints.txt ".[openai,ag-ui,notify]"
COPY agents agents
COPY gateways gateways
COPY shared shared
RUN /venv/bin/pip install --no-cache-dir --no-deps --force-reinstall .

FROM python:${PYTHON}-slim-bookworm
# git and bubblewrap are what the coding agents work with; the data folder belongs to the user who runs.
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates git \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 promptdock \
 && install -d -o promptdock -g promptdock /data
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONSAFEPATH=1 \
    PROMPTDOCK_HOME=/data \
    AGENT_NAME=chatter
USER promptdock
# Not the data folder: nothing that agents wrote lies where a process of ours starts.
WORKDIR /
VOLUME /data
# A worker listens on no port: it is healthy while its presence is heard on the bus.
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s --retries=3 CMD promptdock status "$AGENT_NAME"
# Without a shell between, so that SIGTERM reaches the worker and it can hand over its work.
STOPSIGNAL SIGTERM
CMD ["python", "-m", "agents.chatter"]
