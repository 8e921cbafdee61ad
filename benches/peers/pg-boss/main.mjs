import { PgBoss } from 'pg-boss';
import { main } from '../measure/measure.mjs';

const QUEUE = 'bench';
const hows = {
  // big batches, fetched again at once as long as they come full
  tuned: { batchSize: 500, localConcurrency: 4, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
  // the smallest batch that is fetched again at once: with one job a fetch each worker looks twice a second at most
  one: { batchSize: 2, localConcurrency: 64, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
  latency: { batchSize: 1, localConcurrency: 4 },
};

async function boss(url, max) {
  const boss = new PgBoss({ connectionString: url, max, useListenNotify: true });
  boss.on('error', (error) => console.error(error));
  boss.on('warning', () => {});
  await boss.start();
  return boss;
}

async function setup(url) {
  const one = await boss(url, 4);
  await one.createQueue(QUEUE, { notify: true });
  await one.stop({ graceful: false });
}

async function open(url) {
  const sender = await boss(url, 64);
  return {
    one: (payload) => sender.send(QUEUE, payload),
    many: (payloads) => sender.insert(QUEUE, payloads.map((data) => ({ data }))),
    async work(how, handle) {
      const worker = await boss(url, how === 'one' ? 64 : 10);
      await worker.work(QUEUE, hows[how], async (jobs) => jobs.forEach((job) => handle(job.data)));
      return () => worker.stop({ graceful: true, wait: true });
    },
    close: () => sender.stop({ graceful: false }),
  };
}

await main({ setup, open });
