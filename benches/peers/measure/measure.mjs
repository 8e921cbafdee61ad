// What is measured, the same for every peer in JavaScript: a program is `node main.mjs ACT URL JOBS`.
// A peer gives `open(url)`, which answers { one(payload), many(payloads), work(how, handle), close() }; `work` answers a
// function that stops the worker, and `how` is "tuned", "one" or "latency". The last line of stdout is the result.

const PRODUCERS = 8, SINGLES = 64, BATCH = 100, RATE = 50;
const now = () => performance.timeOrigin + performance.now();

// About 100 bytes of JSON.
const payload = () => ({ sent: now(), pad: 'x'.repeat(66) });

class Handled {
  constructor(jobs) {
    this.jobs = jobs;
    this.count = 0;
    this.waits = [];
    this.all = new Promise((resolve) => { this.resolve = resolve; });
  }
  handle = (job) => {
    const at = now();
    if (this.count === 0) this.first = at;
    this.count += 1;
    this.last = at;
    this.waits.push(at - job.sent);
    if (this.count === this.jobs) this.resolve();
  };
  check() {
    if (this.count !== this.jobs) throw new Error(`${this.count} of ${this.jobs} jobs were handled`);
  }
}

async function concurrently(clients, jobs, batch, act) {
  let left = jobs;
  await Promise.all(Array.from({ length: clients }, async () => {
    while (left > 0) {
      const share = Math.min(batch, left);
      left -= share;
      await act(share);
    }
  }));
}

const batches = (peer, jobs) =>
  concurrently(PRODUCERS, jobs, BATCH, (share) => peer.many(Array.from({ length: share }, payload)));

const acts = {
  async 'enqueue-one'(peer, jobs) {
    const begun = now();
    await concurrently(SINGLES, jobs, 1, () => peer.one(payload()));
    return { seconds: (now() - begun) / 1e3 };
  },
  async 'enqueue-batch'(peer, jobs) {
    const begun = now();
    await batches(peer, jobs);
    return { seconds: (now() - begun) / 1e3 };
  },
  drain: (peer, jobs) => drain(peer, jobs, 'tuned'),
  'drain-one': (peer, jobs) => drain(peer, jobs, 'one'),
  async life(peer, jobs) {
    const handled = new Handled(jobs);
    const stop = await peer.work('tuned', handled.handle);
    const begun = now();
    await batches(peer, jobs);
    await handled.all;
    await stop();
    handled.check();
    return { seconds: (handled.last - begun) / 1e3 };
  },
  async latency(peer, jobs) {
    const handled = new Handled(jobs);
    const stop = await peer.work('latency', handled.handle);
    const begun = now(), sending = [];
    for (let n = 0; n < jobs; n += 1) {
      const wait = begun + (n * 1e3) / RATE - now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      sending.push(peer.one(payload()));
    }
    await Promise.all(sending);
    await handled.all;
    await stop();
    handled.check();
    const sorted = handled.waits.sort((a, b) => a - b);
    const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
    return { p50_ms: at(0.5), p99_ms: at(0.99) };
  },
};

// From the first job that a worker has to the last one: how long a worker takes to start is not measured.
async function drain(peer, jobs, how) {
  const handled = new Handled(jobs);
  const stop = await peer.work(how, handled.handle);
  await handled.all;
  await stop();
  handled.check();
  return { seconds: (handled.last - handled.first) / 1e3 };
}

export async function main({ setup, open }) {
  const [act, url, jobs] = process.argv.slice(2);
  if (act === 'setup') {
    await setup(url);
    process.exit(0);
  }
  const peer = await open(url);
  const result = await acts[act](peer, Number(jobs));
  await peer.close();
  console.log(JSON.stringify(result));
  process.exit(0);
}
