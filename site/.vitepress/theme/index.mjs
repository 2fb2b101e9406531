import DefaultTheme from 'vitepress/theme';
import { h } from 'vue';
import overview from '../../../docs/images/console-overview.png';
// oxlint-disable-next-line import/no-unassigned-import -- styles
import './tokens.css';

/** The picture beside the title of the first page. */
const picture = () =>
  h('img', {
    class: 'hero-picture',
    src: overview,
    alt: 'The overview of an app in the console: what is held, due and paid, and the way from clicks to revenue',
  });

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'home-hero-image': picture }),
};
