import { bundle, linkPackage } from '../../support/bundle.ts'

/**
 * The service, the gateway and what shifts the clock of a process, each in one file: many of them start while a storm
 * loads the machine.
 */
export type Programs = { service: string; sandbox: string; clock: string }

/** Builds them into the folder. */
export function buildPrograms(folder: string): Programs {
  linkPackage(folder)
  return {
    service: bundle('src/main.ts', folder, 'service'),
    sandbox: bundle('src/sandbox/main.ts', folder, 'sandbox'),
    clock: bundle('test/nightly/chaos/shifted-clock.ts', folder, 'clock'),
  }
}
