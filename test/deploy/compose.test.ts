import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { STATEMENT_TIMEOUT_MS } from '../../src/compose/database.ts';
import { CONFIG_VARIABLES, readConfig } from '../../src/config/config.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { environmentOf, interpolate, readCompose, VARIABLE } from '../../tools/compose.ts';
import { TEMPORAL_SERVER_VERSION } from '../../tools/temporal-server.ts';
import { textOf } from '../support/text-of.ts';

const FILES = ['docker-compose.yml', 'docker-compose.dev.yml'];
const text = textOf('docker-compose.yml');
const { services } = readCompose();
/** The variables that docker-compose.yml reads, with what it does when one is missing. */
const variables = [...text.matchAll(VARIABLE)].map(({ groups }) => ({
  name: groups?.['name'] ?? '',
  kind: groups?.['kind'],
  rest: groups?.['rest'] ?? '',
}));
const passedOn = Object.values(services).flatMap(({ environment = {} }) =>
  Object.entries(environment).flatMap(([name, value]) => (value === null ? [name] : [])),
);
const required = new Map(variables.flatMap(({ name, kind, rest }) => (kind === '?' ? [[name, rest]] : [])));
const filledIn = Object.fromEntries(
  [...required.keys()].map((name) => [
    name,
    name === 'SECRETS_KEY' ? 'k'.repeat(43) : `https://${name}.test`,
  ]),
);

/** The variables that the service processes of docker-compose.yml do not have, and why. */
const LEFT_OUT = {
  DATA_DIR: 'the folder of the built-in servers, which the image does not have',
  MIGRATIONS_DATABASE_URL: 'only the container of the migrations may change the schema',
  TEMPORAL_API_KEY: 'the Temporal server of the file is reached in a private network only',
};

describe('docker-compose.yml', () => {
  test('a service process gets every variable of the configuration, or leaves it out on purpose', () => {
    const given = Object.keys(services['tributary']?.environment ?? {});
    // The SDK of OpenTelemetry reads the others of its variables itself.
    const own = given.filter((name) => !/^OTEL_(?!EXPORTER_OTLP_ENDPOINT)/.test(name));
    expect([...own, ...Object.keys(LEFT_OUT)].toSorted()).toEqual(CONFIG_VARIABLES.toSorted());
  });

  test('.env.example names every variable that the file reads, and no other', () => {
    const named = [...textOf('.env.example').matchAll(/^(?:# )?([A-Z][A-Z0-9_]+)=/gm)].map(
      ([, name]) => name,
    );
    const read = new Set([...variables.map(({ name }) => name), ...passedOn]);
    expect(new Set(named)).toEqual(read);
    expect(named).toHaveLength(read.size);
  });

  test('a required variable that is missing stops the start with a sentence, and no secret has a default', () => {
    for (const [name, sentence] of required) {
      expect(sentence).toMatch(new RegExp(`^Set ${name} in \\.env to .*\\.$`));
      expect(textOf('.env.example')).toMatch(new RegExp(`^${name}=$`, 'm'));
    }
    const secrets = variables.filter(({ name }) => /PASSWORD|SECRET|KEY/.test(name));
    expect(new Set(secrets.map(({ kind }) => kind))).toEqual(new Set(['?']));
    expect(() => environmentOf('tributary', { ...filledIn, SERVICE_PASSWORD: '' })).toThrow(
      required.get('SERVICE_PASSWORD'),
    );
    expect(interpolate('${LISTEN:-127.0.0.1:8080}:8080', {})).toBe('127.0.0.1:8080:8080');
  });

  test('with the required variables only, the configuration is valid, and the service cannot change the schema', () => {
    const environment = environmentOf('tributary', {
      ...filledIn,
      SERVICE_PASSWORD: 's',
      OWNER_PASSWORD: 'owners',
    });
    const config = readConfig(environment);
    expect(config).toMatchObject({
      role: 'all',
      trustProxy: 1,
      drainSeconds: 5,
      temporal: { address: 'temporal:7233' },
    });
    expect(config.databaseUrl).toContain('//tributary_service:s@postgres:5432/');
    expect(JSON.stringify(environment)).not.toContain('owners');
  });

  test('the images have exact versions, and those of Temporal the version that the tests run', () => {
    const images = FILES.flatMap((name) =>
      Object.values(readCompose(name).services).map(({ image = '' }) => image),
    ).filter((image) => !image.startsWith('${'));
    expect(images.filter((image) => !/:\d+\.\d+(?:\.\d+)?(?:-[a-z]+)?$/.test(image))).toEqual([]);
    for (const name of ['temporal', 'temporal-schema', 'temporal-namespace'])
      expect(services[name]?.image?.split(':')[1]).toBe(TEMPORAL_SERVER_VERSION);
    const nodes = [...textOf('Dockerfile').matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
    expect(new Set(nodes).size).toBe(1);
    expect(nodes[0]).toMatch(/^node:\d+\.\d+\.\d+-/);
  });

  test('every file that a container mounts or runs exists', () => {
    const mounted = Object.values(services).flatMap(({ volumes = [] }) =>
      (volumes as readonly string[])
        .filter((volume) => volume.startsWith('./'))
        .map((volume) => volume.split(':')[0] ?? ''),
    );
    expect(mounted.length).toBeGreaterThan(3);
    expect(mounted.filter((file) => !existsSync(path.join(projectRoot, file)))).toEqual([]);
  });

  // @promise containers-confined
  test.each(Object.entries(services))(
    'the container %s has no capability that it does not need, gains none, and has a log of limited size',
    (name, service) => {
      expect(service).toMatchObject({
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        logging: { options: { 'max-size': '10m', 'max-file': '5' } },
      });
      // The image of Postgres begins as root. Those of Temporal write their configuration when they start.
      expect(service.cap_add === undefined).toBe(name !== 'postgres');
      expect(service.read_only === true).toBe(!name.startsWith('temporal'));
    },
  );

  test('a connection of the balancer has one request at a time: HTTP/2 would have a hundred', () => {
    const options = textOf('deploy/haproxy/haproxy.cfg').split('\n');
    expect(options).toContain('    option disable-h2-upgrade');
    expect(options.filter((line) => /^ *bind /.test(line))).toEqual(['    bind "${LISTEN}"']);
  });

  // @promise starvation
  test('the balancer and Kubernetes wait three times for a readiness that a slow database delays', () => {
    const balancer = textOf('deploy/haproxy/haproxy.cfg');
    const kubernetes = textOf('deploy/kubernetes/deployment.yaml').split('readinessProbe:')[1] ?? '';
    const seconds = [
      /timeout check (\d+)s/.exec(balancer)?.[1],
      /timeoutSeconds: (\d+)/.exec(kubernetes)?.[1],
    ];
    for (const one of seconds) expect(Number(one) * 1_000).toBeGreaterThan(STATEMENT_TIMEOUT_MS);
    expect([/ fall (\d+)/.exec(balancer)?.[1], /failureThreshold: (\d+)/.exec(kubernetes)?.[1]]).toEqual([
      '3',
      '3',
    ]);
  });

  // @promise containers-confined
  test('the UI of Temporal, which has no log-in, and the databases are in no network of the balancer', () => {
    const balancer = new Set(services['balancer']?.networks);
    const beside = Object.entries(services).filter(([, { networks = [] }]) =>
      networks.some((one) => balancer.has(one)),
    );
    expect(beside.map(([name]) => name).toSorted()).toEqual(['balancer', 'tributary']);
  });

  test('the service has a health check of its own, because an image in the OCI format has none', () => {
    expect(services['tributary']?.healthcheck?.test).toEqual(['CMD', 'node', 'deploy/health-check.mjs']);
    expect(textOf('Dockerfile')).toContain('CMD ["node", "deploy/health-check.mjs"]');
  });

  test('a new installation has the number of shards that docs/scaling.md names', () => {
    expect(textOf('.env.example')).toMatch(/^TEMPORAL_HISTORY_SHARDS=512$/m);
    expect(textOf('docs/scaling.md')).toContain('Choose 512 for a company of its own');
  });

  test('a container has at least as long for its stop as the service may take', () => {
    // The drain, requests, hold timers, activities with the forced end of a worker, and five more.
    const longest = 5 + 10 + 2 + 15 + 5;
    expect(Number(services['tributary']?.stop_grace_period?.replace('s', ''))).toBeGreaterThan(longest);
    const [, grace] =
      /terminationGracePeriodSeconds: (\d+)/.exec(textOf('deploy/kubernetes/deployment.yaml')) ?? [];
    const [, drain] = /DRAIN_SECONDS=(\d+)/.exec(textOf('deploy/kubernetes/kustomization.yaml')) ?? [];
    expect(Number(grace)).toBeGreaterThan(longest - 5 + Number(drain));
  });
});

describe('deploy/kubernetes/network-policy.yaml', () => {
  // @promise pods-egress
  test('the pods reach names, Postgres, Temporal and public addresses, and no other private address', () => {
    const policy = textOf('deploy/kubernetes/network-policy.yaml');
    expect(policy).toContain('policyTypes: [Ingress, Egress]');
    const egress = policy.slice(policy.indexOf('egress:'));
    expect([...egress.matchAll(/port: (\d+)/g)].map(([, port]) => port)).toEqual([
      '53',
      '53',
      '5432',
      '7233',
      '1',
    ]);
    for (const range of ['10.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']) {
      expect(egress).toContain(range);
    }
  });
});
