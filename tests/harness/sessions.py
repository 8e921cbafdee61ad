"""Short forms of ConnectionService's looks at the database."""

from harness.calls import CALLER, eventually
from harness.stubs import connection_pb as cpb
from harness.stubs import connection_rpc

STATE, KIND, ATTRIBUTION = cpb.SessionState, cpb.SessionKind, cpb.Attribution


class Look:
    """One answer of ListDatabaseSessions."""

    def __init__(self, answer):
        self.answer = answer
        self.callers = {(one.caller, one.leasehold): one for one in answer.callers}
        self.sessions = {one.session_id: one for one in answer.sessions}

    def caller(self, name, leasehold=False):
        """The totals of a name."""
        return self.callers.get((name, leasehold))

    def held(self, name, leasehold=False):
        """Estimated hold seconds of a name and their standard error."""
        found = self.caller(name, leasehold)
        return (found.held.ToMicroseconds() / 1e6, found.held_error.ToMicroseconds() / 1e6) if found else (0.0, 0.0)


class Watcher:
    """Looks at a broker's database."""

    def __init__(self, broker):
        self.stub = connection_rpc.ConnectionServiceStub(broker.channel())

    def look(self, **fields):
        """Everything, now."""
        return Look(self.stub.ListDatabaseSessions(cpb.ListDatabaseSessionsRequest(**fields), timeout=10, metadata=CALLER))

    def until(self, condition, within=15, what="the look"):
        """Looks until `condition` holds of what is seen; that."""
        def seen():
            look = self.look()
            return look if condition(look) else None
        return eventually(seen, within, what)

    def horizon(self):
        """Who holds back vacuum."""
        return self.stub.GetVacuumHorizon(cpb.GetVacuumHorizonRequest(), timeout=10, metadata=CALLER)


def state(session):
    """ACTIVE, IDLE, IDLE_IN_TRANSACTION or HIDDEN."""
    return STATE.Name(session.state).removeprefix("SESSION_STATE_")


def kind(session):
    """CLIENT, PARALLEL_WORKER and so on."""
    return KIND.Name(session.kind).removeprefix("SESSION_KIND_")


def attribution(one):
    """CONN_TAG, SQLCOMMENTER, APPLICATION_NAME or NONE."""
    return ATTRIBUTION.Name(one.attribution).removeprefix("ATTRIBUTION_")
