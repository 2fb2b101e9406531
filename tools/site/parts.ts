/** A page of the documentation site. */
interface Page {
  /** The file, from the root of the repository. For a generated page, the file that its links are relative to. */
  readonly from: string;
  /** The file on the site. */
  readonly to: string;
  /** The text in the sidebar. Without it, the first heading of the file. */
  readonly title?: string;
}

interface Part {
  readonly title: string;
  readonly pages: readonly Page[];
}

const docs = (...names: readonly string[]): Page[] =>
  names.map((name) => ({ from: `docs/${name}.md`, to: `${name}.md` }));

/** The page that lists the promises with their tests, made by `test/support/conformance-page.ts`. */
export const CONFORMANCE: Page = { from: 'docs/conformance.md', to: 'conformance.md', title: 'Conformance' };

/** The pages of the site in the order of its sidebar, without those of the API's operations. */
export const PARTS: readonly Part[] = [
  { title: 'Start', pages: docs('start') },
  { title: 'Concepts', pages: docs('concepts') },
  {
    title: 'Guides',
    pages: docs(
      'founders',
      'tasks',
      'providers',
      'providers/adapty',
      'providers/paddle',
      'providers/revenuecat',
      'providers/stripe',
      'providers/superwall',
      'redirect',
      'webhooks-out',
      'reconcile',
      'payout-proofs',
      'erasure',
    ),
  },
  { title: 'API', pages: docs('contract', 'errors') },
  {
    title: 'SDKs',
    pages: [
      ...docs('sdks'),
      { from: 'sdks/js/web/README.md', to: 'sdks/web.md', title: 'Web' },
      { from: 'sdks/js/web/snippets/README.md', to: 'sdks/web-snippets.md', title: 'Web without a bundler' },
      { from: 'sdks/js/node/README.md', to: 'sdks/node.md', title: 'Node' },
      { from: 'sdks/js/react-native/README.md', to: 'sdks/react-native.md', title: 'React Native' },
      { from: 'sdks/swift/README.md', to: 'sdks/ios.md', title: 'iOS' },
      { from: 'sdks/kotlin/README.md', to: 'sdks/android.md', title: 'Android' },
      { from: 'sdks/kotlin/JVM.md', to: 'sdks/jvm.md', title: 'JVM' },
      { from: 'sdks/flutter/README.md', to: 'sdks/flutter.md', title: 'Flutter' },
      { from: 'sdks/examples/README.md', to: 'sdks/examples.md' },
      { from: 'sdks/PRIVACY.md', to: 'sdks/privacy.md', title: 'Privacy answers' },
      { from: 'sdks/SPEC.md', to: 'sdks/specification.md' },
      { from: 'sdks/CHANGELOG.md', to: 'sdks/changelog.md', title: 'Changelog' },
    ],
  },
  {
    title: 'Operate',
    pages: [
      ...docs('operators', 'deploy', 'runbook', 'backup', 'upgrading', 'reprocess', 'audit'),
      { from: 'docs/scaling.md', to: 'scaling.md', title: 'Scaling' },
      { from: 'CHANGELOG.md', to: 'changelog.md' },
      { from: 'SECURITY.md', to: 'security-policy.md', title: 'Vulnerabilities and releases' },
    ],
  },
  {
    title: 'Internals',
    pages: [
      ...docs(
        'architecture',
        'money',
        'database',
        'temporal',
        'reliability',
        'security',
        'rollups',
        'performance',
        'decisions',
        'provider-conformance',
      ),
      CONFORMANCE,
    ],
  },
  {
    title: 'Contribute',
    pages: [{ from: 'CONTRIBUTING.md', to: 'contributing.md' }, ...docs('engineers', 'debugging')],
  },
];
