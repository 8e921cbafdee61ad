import { makeWorkerUtils, run, Logger } from 'graphile-worker';
import { main } from '../measure/measure.mjs';

const TASK = 'bench';
const logger = new Logger(() => () => {});

const hows = {
  // as its page on performance has it
  tuned: { concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
  one: { concurrentJobs: 64, maxPoolSize: 65 },
  latency: { concurrentJobs: 24, maxPoolSize: 25 },
};

const preset = (url, worker) => ({ worker: { connectionString: url, logger, ...worker } });

async function setup(url) {
  const utils = await makeWorkerUtils({ preset: preset(url, {}) });
  await utils.migrate();
  await utils.release();
}

async function open(url) {
  const utils = await makeWorkerUtils({ preset: preset(url, { maxPoolSize: 64 }) });
  return {
    one: (payload) => utils.addJob(TASK, payload),
    many: (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: TASK, payload }))),
    async work(how, handle) {
      const runner = await run({ preset: preset(url, hows[how]), taskList: { [TASK]: handle }, noHandleSignals: true });
      return () => runner.stop();
    },
    close: () => utils.release(),
  };
}

await main({ setup, open });
