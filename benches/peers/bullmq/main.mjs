import { Queue, Worker } from 'bullmq';
import { main } from '../measure/measure.mjs';

const QUEUE = 'bench';
const gone = { removeOnComplete: true, removeOnFail: true };

const connection = (url) => {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), maxRetriesPerRequest: null };
};

async function setup(url) {
  const queue = new Queue(QUEUE, { connection: connection(url) });
  await queue.waitUntilReady();
  await queue.close();
}

async function open(url) {
  const queue = new Queue(QUEUE, { connection: connection(url), defaultJobOptions: gone });
  await queue.waitUntilReady();
  return {
    one: (payload) => queue.add('job', payload),
    many: (payloads) => queue.addBulk(payloads.map((data) => ({ name: 'job', data }))),
    async work(how, handle) {
      const concurrency = { tuned: 300, one: 64, latency: 64 }[how];
      const worker = new Worker(QUEUE, async (job) => handle(job.data), { connection: connection(url), concurrency });
      await worker.waitUntilReady();
      return () => worker.close();
    },
    close: () => queue.close(),
  };
}

await main({ setup, open });
